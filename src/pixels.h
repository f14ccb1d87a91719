// Pictures through the Arrow C data interface: https://arrow.apache.org/docs/format/CDataInterface.html
#pragma once

#include "mmkey/hash.h"

#include <pybind11/pybind11.h>

#include <cstddef>
#include <cstdint>

namespace mmkey::python {

/// Pixels where another library keeps them, of `stride` bytes each, of which the first `kept` count.
class Pixels {
  public:
    /// From the capsules "arrow_schema" and "arrow_array" of `count` pixels, one number of `stride` bytes or a list of
    /// four bytes each. Throws ValueError for an array of any other form.
    Pixels(pybind11::capsule schema, pybind11::capsule array, std::size_t count, std::size_t stride, std::size_t kept);

    /// Bytes that count.
    std::size_t size() const noexcept { return count_ * kept_; }
    Message message(Bytes head) const noexcept { return {head, {data_, count_ * stride_}, kept_ != stride_}; }

  private:
    pybind11::capsule array_;  // whose end lets the memory go
    const std::uint8_t* data_;
    std::size_t count_, stride_, kept_;
};

}  // namespace mmkey::python
