// The streaming objects, mmkey.sha256 and mmkey.blake3.
#pragma once

#include <pybind11/pybind11.h>

namespace mmkey::python {

void bind_hashers(pybind11::module_& module);

}  // namespace mmkey::python
