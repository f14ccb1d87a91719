// The errors of the core. All are raised before anything is hashed or stored: what was given stays as it was.
#pragma once

#include <stdexcept>
#include <string>
#include <utility>

namespace mmkey {

/// A value that no key can be made of. `field` is its place in the request (`items[1].patch_grid`), `problem` names the
/// value and what is allowed; `what()` is both in one line.
class InvalidRequest : public std::invalid_argument {
  public:
    InvalidRequest(std::string field, std::string problem)
        : std::invalid_argument(field + ": " + problem), field_(std::move(field)), problem_(std::move(problem)) {}

    const std::string& field() const noexcept { return field_; }
    const std::string& problem() const noexcept { return problem_; }

  private:
    std::string field_, problem_;
};

/// A bounded structure has no room left, and what is held leaves none to make.
class CapacityError : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

/// A hold on cached blocks that is not to be had, or to be given back: stale, released already, or in the way.
class HoldError : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

}  // namespace mmkey
