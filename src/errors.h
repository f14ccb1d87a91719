// The errors that only a binding can meet: objects of a type that no value can be made of.
#pragma once

#include <exception>
#include <string>
#include <utility>

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
