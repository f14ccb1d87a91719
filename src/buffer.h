// The one way from a Python buffer to bytes.
#pragma once

#include "call.h"

#include "mmkey/bytes.h"

#include <pybind11/pybind11.h>

#include <cstring>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <utility>

namespace mmkey::python {

/// What a buffer is to its caller: `data`, or `buffers[3]`.
struct Field {
    const char* name;
    std::size_t index = none;

    static constexpr std::size_t none = static_cast<std::size_t>(-1);
    std::string text() const { return index == none ? name : name + ("[" + std::to_string(index) + "]"); }
};

/// The bytes of an object with the buffer protocol, in C order: its own memory where that is contiguous, a copy where it
/// is not. Memory stays alive and (as far as the exporter can help it) in place until the view is gone, which must happen
/// with the GIL held.
class BufferView {
  public:
    BufferView() noexcept = default;
    BufferView(const BufferView&) = delete;
    BufferView& operator=(const BufferView&) = delete;
    BufferView(BufferView&& other) noexcept { *this = std::move(other); }
    BufferView& operator=(BufferView&& other) noexcept {
        std::swap(bytes_, other.bytes_);
        std::swap(owner_, other.owner_);
        std::swap(view_, other.view_);  // an exporter gets back the members, not the address
        std::swap(copy_, other.copy_);
        std::swap(rows_, other.rows_);
        return *this;
    }
    ~BufferView() {
        if (view_.obj) PyBuffer_Release(&view_);
        Py_XDECREF(owner_);
    }

    /// Takes `object`, once; false with a Python error set: UnsupportedType for what has no bytes and
    /// InvalidRequest for what has them no more, naming `field`, and whatever else the exporter itself raises.
    [[nodiscard]] bool take(PyObject* object, const Field& field) noexcept {
        if (PyBytes_CheckExact(object)) {
            owner_ = Py_NewRef(object);
            bytes_ = {reinterpret_cast<const std::uint8_t*>(PyBytes_AS_STRING(object)),
                      static_cast<std::size_t>(PyBytes_GET_SIZE(object))};
            return true;
        }
        return take_buffer(object, field);
    }

    Bytes bytes() const noexcept { return bytes_; }

    /// The length of the first of several dimensions; nothing where there are fewer than two.
    std::optional<std::size_t> rows() const noexcept { return rows_; }

  private:
    bool take_buffer(PyObject* object, const Field& field) noexcept {
        if (PyUnicode_Check(object)) {
            raise("UnsupportedType", field.text(),
                  "text has no bytes of its own: encode it first, as in text.encode()");
            return false;
        }
        if (!PyObject_CheckBuffer(object)) {
            raise("UnsupportedType", field.text(),
                  std::string("wants a bytes-like object (the buffer protocol), not ") + Py_TYPE(object)->tp_name);
            return false;
        }
        if (PyObject_GetBuffer(object, &view_, PyBUF_ND | PyBUF_FORMAT) != 0) {
            if (!PyErr_ExceptionMatches(PyExc_BufferError) && !PyErr_ExceptionMatches(PyExc_ValueError)) return false;
            PyErr_Clear();  // not contiguous: ask again, with strides
            if (PyObject_GetBuffer(object, &view_, PyBUF_FULL_RO) != 0) return unreadable(object, field);
        }
        if (view_.format && std::strchr(view_.format, 'O')) {
            raise("UnsupportedType", field.text(), "holds Python objects: their addresses are no content");
            return false;
        }
        if (view_.ndim > 1) rows_ = static_cast<std::size_t>(view_.shape[0]);
        const auto size = static_cast<std::size_t>(view_.len);
        if (view_.strides && !PyBuffer_IsContiguous(&view_, 'C')) {
            copy_.reset(new (std::nothrow) std::uint8_t[size]);
            if (!copy_) return PyErr_NoMemory(), false;
            if (PyBuffer_ToContiguous(copy_.get(), &view_, view_.len, 'C') != 0) return false;
            PyBuffer_Release(&view_);
            bytes_ = {copy_.get(), size};
        } else {
            bytes_ = {static_cast<const std::uint8_t*>(view_.buf), size};
        }
        return true;
    }

    /// A memoryview that was released and what else is closed raise ValueError.
    static bool unreadable(PyObject* object, const Field& field) noexcept {
        if (!PyErr_ExceptionMatches(PyExc_ValueError)) return false;
        PyErr_Clear();
        raise("InvalidRequest", field.text(),
              std::string("is a ") + Py_TYPE(object)->tp_name + " that cannot be read: it is closed or was released");
        return false;
    }

    Bytes bytes_;
    PyObject* owner_ = nullptr;
    Py_buffer view_{};
    std::unique_ptr<std::uint8_t[]> copy_;
    std::optional<std::size_t> rows_;
};

/// Below this many bytes a digest takes no longer than giving the GIL up and fetching it back.
constexpr std::size_t gil_release_size = 16 * 1024;

/// Gives the GIL up for as long as it lives, if the work is worth it.
class ReleaseGil {
  public:
    explicit ReleaseGil(std::size_t work) noexcept : state_(work >= gil_release_size ? PyEval_SaveThread() : nullptr) {}
    ReleaseGil(const ReleaseGil&) = delete;
    ReleaseGil& operator=(const ReleaseGil&) = delete;
    ~ReleaseGil() {
        if (state_) PyEval_RestoreThread(state_);
    }

  private:
    PyThreadState* state_;
};

}  // namespace mmkey::python
