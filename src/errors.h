// The errors that only a binding can meet: objects of a type that no value can be made of.
#pragma once

#include <pybind11/pybind11.h>

#include <exception>
#include <string>
#include <utility>

/// A wrong value for a message: its repr in one line, cut short.
std::string shown(pybind11::handle object);

/// Becomes mmkey.errors.UnsupportedType.
class UnsupportedType : public std::exception {
  public:
    UnsupportedType(std::string field, std::string problem) : field_(std::move(field)), problem_(std::move(problem)) {}

    const std::string& field() const noexcept { return field_; }
    const std::string& problem() const noexcept { return problem_; }
    const char* what() const noexcept override { return problem_.c_str(); }

  private:
    std::string field_, problem_;
};
