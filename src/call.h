// Calls without pybind11's dispatcher, for functions of which a nanosecond counts: arguments, errors.
#pragma once

#include "errors.h"
#include "mmkey/hash.h"

#include <pybind11/pybind11.h>

#include <algorithm>
#include <optional>
#include <span>
#include <string>

namespace mmkey::python {

/// Sets mmkey.errors.<type>(field, problem); the message is one line.
inline void raise(const char* type, const std::string& field, const std::string& problem) noexcept {
    PyObject* module = PyImport_ImportModule("mmkey.errors");
    PyObject* error = module ? PyObject_CallMethod(module, type, "ss", field.c_str(), problem.c_str()) : nullptr;
    Py_XDECREF(module);
    if (!error) return;
    PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(error)), error);
    Py_DECREF(error);
}

/// The parameters of one function; the first `positional` may be given by place, the first `required` must be given.
struct Signature {
    const char* function;
    std::size_t positional;
    std::size_t required;
    std::span<const char* const> names;

    /// Sorts a vectorcall's arguments into `out`, one a name, nullptr where not given. False with TypeError set.
    [[nodiscard]] bool parse(PyObject* const* args, Py_ssize_t count, PyObject* keywords,
                             PyObject** out) const noexcept {
        if (static_cast<std::size_t>(count) > positional) {
            PyErr_Format(PyExc_TypeError, "%s() takes at most %zu positional arguments (%zd given)", function,
                         positional, count);
            return false;
        }
        std::copy(args, args + count, out);
        std::fill(out + count, out + names.size(), nullptr);
        const Py_ssize_t named = keywords ? PyTuple_GET_SIZE(keywords) : 0;
        for (Py_ssize_t i = 0; i < named; ++i) {
            PyObject* keyword = PyTuple_GET_ITEM(keywords, i);
            const auto name = std::find_if(names.begin(), names.end(), [keyword](const char* candidate) {
                return PyUnicode_CompareWithASCIIString(keyword, candidate) == 0;
            });
            if (name == names.end()) {
                PyErr_Format(PyExc_TypeError, "%s() got an unexpected keyword argument '%U'", function, keyword);
                return false;
            }
            PyObject*& place = out[name - names.begin()];
            if (place) {
                PyErr_Format(PyExc_TypeError, "%s() got multiple values for argument '%s'", function, *name);
                return false;
            }
            place = args[count + i];
        }
        for (std::size_t i = 0; i < required; ++i) {
            if (out[i]) continue;
            PyErr_Format(PyExc_TypeError, "%s() missing required argument '%s'", function, names[i]);
            return false;
        }
        return true;
    }
};

/// "sha256" or "blake3"; nothing, with InvalidRequest set, for another name.
inline std::optional<Algorithm> to_algorithm(PyObject* name) noexcept {
    if (!name) return Algorithm::sha256;
    if (PyUnicode_Check(name)) {
        if (PyUnicode_CompareWithASCIIString(name, "sha256") == 0) return Algorithm::sha256;
        if (PyUnicode_CompareWithASCIIString(name, "blake3") == 0) return Algorithm::blake3;
    }
    raise("InvalidRequest", "algorithm", "is " + shown(name) + "; it must be 'sha256' or 'blake3'");
    return std::nullopt;
}

/// A whole number from `least` to `most`; nothing, with an error set, for anything else. A missing one is `fallback`.
inline std::optional<unsigned long long> to_number(PyObject* number, const char* field, unsigned long long fallback,
                                                   unsigned long long least, unsigned long long most) noexcept {
    if (!number) return fallback;
    PyObject* index = PyBool_Check(number) ? nullptr : PyNumber_Index(number);
    if (!index) {
        PyErr_Clear();
        raise("UnsupportedType", field, std::string("must be an integer, not ") + Py_TYPE(number)->tp_name);
        return std::nullopt;
    }
    const unsigned long long value = PyLong_AsUnsignedLongLong(index);
    const bool overflow = value == static_cast<unsigned long long>(-1) && PyErr_Occurred();
    if (overflow) PyErr_Clear();
    if (overflow || value < least || value > most) {
        raise("InvalidRequest", field,
              "is " + shown(index) + "; it must lie in [" + std::to_string(least) + ", " + std::to_string(most) + "]");
        Py_DECREF(index);
        return std::nullopt;
    }
    Py_DECREF(index);
    return value;
}

constexpr unsigned max_thread_count = 1024;

/// A number of threads, at least 1.
inline std::optional<unsigned> to_threads(PyObject* number, const char* field = "threads") noexcept {
    const auto value = to_number(number, field, 1, 1, max_thread_count);
    return value ? std::optional<unsigned>(static_cast<unsigned>(*value)) : std::nullopt;
}

}  // namespace mmkey::python
