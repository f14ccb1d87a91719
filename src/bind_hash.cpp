// Digests in one call; the streaming objects are in bind_hasher.cpp.
#include "buffer.h"
#include "call.h"
#include "hasher.h"

#include "mmkey/hash.h"

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <exception>
#include <stdexcept>
#include <string_view>
#include <vector>

namespace py = pybind11;

namespace mmkey::python {
namespace {

PyObject* digest_one(PyObject*, PyObject* const* args, Py_ssize_t count, PyObject* keywords) noexcept {
    static constexpr const char* names[] = {"data", "algorithm", "threads"};
    static constexpr Signature signature{"digest", 2, 1, names};
    PyObject* given[3];
    if (!signature.parse(args, count, keywords, given)) return nullptr;
    const auto algorithm = to_algorithm(given[1]);
    const auto threads = algorithm ? to_threads(given[2]) : std::nullopt;
    if (!threads) return nullptr;
    BufferView data;
    if (!data.take(given[0], {"data"})) return nullptr;
    Digest out;
    {
        const ReleaseGil release(data.bytes().size());
        out = digest(*algorithm, data.bytes(), *threads);
    }
    return PyBytes_FromStringAndSize(reinterpret_cast<const char*>(out.data()), sizeof out);
}

Bytes plain_bytes(PyObject* object) {
    return {reinterpret_cast<const std::uint8_t*>(PyBytes_AS_STRING(object)),
            static_cast<std::size_t>(PyBytes_GET_SIZE(object))};
}

/// The messages that a caller gave, and what keeps them alive.
struct Batch {
    std::size_t size = 0;
    std::size_t total = 0;          // bytes
    std::size_t row = 0;            // bytes of a row
    std::vector<Message> messages;  // none where many short ones, bytes objects or rows, are found as they are hashed
    py::object items;               // a tuple of our own: nobody can change it while the GIL is released
    std::vector<BufferView> views;  // of all that is not plain bytes

    bool take(PyObject* buffers, unsigned threads) {
        if (PyObject_CheckBuffer(buffers)) return take_rows(buffers, threads);
        if (!PyUnicode_Check(buffers)) items = py::reinterpret_steal<py::object>(PySequence_Tuple(buffers));
        if (!items) {
            if (PyErr_Occurred() && !PyErr_ExceptionMatches(PyExc_TypeError)) return false;
            return refuse(buffers);
        }
        size = static_cast<std::size_t>(PyTuple_GET_SIZE(items.ptr()));
        return (threads == 1 && take_short()) || take_each();
    }

    /// Digests them all; the GIL is not needed.
    void digest(Algorithm algorithm, Digest* out, unsigned threads) const {
        if (!messages.empty() || size == 0) return digest_many(algorithm, messages, {out, size}, threads);
        Message slice[slice_size];
        for (std::size_t done = 0; done < size;) {
            const std::size_t n = std::min(slice_size, size - done);
            for (std::size_t i = 0; i < n; ++i) {
                slice[i].body = items ? plain_bytes(PyTuple_GET_ITEM(items.ptr(), static_cast<Py_ssize_t>(done + i)))
                                      : views[0].bytes().subspan((done + i) * row, row);
            }
            digest_many(algorithm, {slice, n}, {out + done, n}, threads);
            done += n;
        }
    }

  private:
    static constexpr std::size_t slice_size = 512;  // what describes them stays in the first-level cache

    static constexpr std::size_t short_size = 256;  // bytes, up to which the order of messages is of no account

    bool take_short() {
        if (size <= slice_size) return false;
        std::size_t bytes = 0;
        for (std::size_t i = 0; i < size; ++i) {
            PyObject* item = PyTuple_GET_ITEM(items.ptr(), static_cast<Py_ssize_t>(i));
            if (!PyBytes_CheckExact(item)) return false;
            bytes += static_cast<std::size_t>(PyBytes_GET_SIZE(item));
        }
        if (bytes / size > short_size) return false;
        total = bytes;
        return true;
    }

    bool take_each() {
        messages.resize(size);
        for (std::size_t i = 0; i < size; ++i) {
            PyObject* item = PyTuple_GET_ITEM(items.ptr(), static_cast<Py_ssize_t>(i));
            Bytes& body = messages[i].body;
            if (PyBytes_CheckExact(item)) {
                body = plain_bytes(item);
            } else {
                BufferView view;
                if (!view.take(item, {"buffers", i})) return false;
                body = view.bytes();
                views.push_back(std::move(view));
            }
            total += body.size();
        }
        return true;
    }

    /// An array of two or more dimensions is a sequence of its rows.
    bool take_rows(PyObject* array, unsigned threads) {
        BufferView view;
        if (!view.take(array, {"buffers"})) return false;
        if (!view.rows()) return refuse(array);
        total = view.bytes().size();
        size = *view.rows();
        row = size == 0 ? 0 : total / size;
        views.push_back(std::move(view));
        if (threads == 1 && size > slice_size && row <= short_size) return true;
        messages.resize(size);
        for (std::size_t i = 0; i < size; ++i) messages[i].body = views[0].bytes().subspan(i * row, row);
        return true;
    }

    static bool refuse(PyObject* object) {
        PyErr_Clear();
        raise("UnsupportedType", "buffers",
              std::string("must be a sequence of buffers, not one ") + Py_TYPE(object)->tp_name);
        return false;
    }
};

PyObject* digest_batch(PyObject*, PyObject* const* args, Py_ssize_t count, PyObject* keywords) noexcept {
    static constexpr const char* names[] = {"buffers", "algorithm", "threads"};
    static constexpr Signature signature{"digest_many", 2, 1, names};
    PyObject* given[3];
    if (!signature.parse(args, count, keywords, given)) return nullptr;
    const auto algorithm = to_algorithm(given[1]);
    const auto threads = algorithm ? to_threads(given[2]) : std::nullopt;
    if (!threads) return nullptr;
    try {
        Batch batch;
        if (!batch.take(given[0], *threads)) return nullptr;
        const auto size = static_cast<py::ssize_t>(batch.size);
        py::array_t<std::uint8_t> out(std::vector<py::ssize_t>{size, static_cast<py::ssize_t>(sizeof(Digest))});
        auto* digests = reinterpret_cast<Digest*>(out.mutable_data());
        {
            const ReleaseGil release(batch.total + batch.size * 64);
            batch.digest(*algorithm, digests, *threads);
        }
        return out.release().ptr();
    } catch (py::error_already_set& error) {
        error.restore();
    } catch (const std::bad_alloc&) {
        PyErr_NoMemory();
    } catch (const std::exception& error) {
        PyErr_SetString(PyExc_RuntimeError, error.what());
    }
    return nullptr;
}

py::dict kernel_table() {
    py::dict table;
    for (const KernelChoice& choice : kernels()) {
        const py::str algorithm{std::string(name(choice.algorithm))};
        if (!table.contains(algorithm)) table[algorithm] = py::dict();
        py::dict row;
        row["kernel"] = std::string(choice.kernel);
        row["available"] =
            py::tuple(py::cast(std::vector<std::string>(choice.available.begin(), choice.available.end())));
        table[algorithm][py::str(std::string(choice.operation))] = row;
    }
    return table;
}

PyMethodDef functions[] = {
    {"digest", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(digest_one)), METH_FASTCALL | METH_KEYWORDS,
     PyDoc_STR("digest(data, algorithm='sha256', *, threads=1)\n--\n\n"
               "The 32-byte digest of a bytes-like object, in the cheapest call there is.\n\n"
               "data: anything with the buffer protocol; memory that is not contiguous is hashed in C order.\n"
               "algorithm: 'sha256' or 'blake3'.\n"
               "threads: the most that may work on it (BLAKE3 only; SHA-256 of one message is serial).\n\n"
               "From 16 KiB on other Python threads run meanwhile. Raises UnsupportedType (data, threads) and\n"
               "InvalidRequest (algorithm, threads).")},
    {"digest_many", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(digest_batch)),
     METH_FASTCALL | METH_KEYWORDS,
     PyDoc_STR("digest_many(buffers, algorithm='sha256', *, threads=1)\n--\n\n"
               "The digests of many messages, hashed side by side: a uint8 array of shape (n, 32).\n\n"
               "buffers: a sequence of bytes-like objects of any sizes, or an array of two or more dimensions, which\n"
               "stands for its rows.\n"
               "threads: the most that may work on them.\n\n"
               "Raises as digest does; the field is buffers[i].")},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace
}  // namespace mmkey::python

namespace {

/// A kernel that gives wrong digests, or MMKEY_FORCE_KERNEL with one unknown, fails the import, in one line of UTF-8 whatever
/// bytes the variable holds.
void choose_kernels() {
    try {
        mmkey::kernels();
    } catch (const std::exception& error) {
        const std::string_view what = error.what();
        const auto text = py::reinterpret_steal<py::str>(
            PyUnicode_DecodeUTF8(what.data(), static_cast<py::ssize_t>(what.size()), "backslashreplace"));
        if (!text) throw py::error_already_set();
        throw std::runtime_error(py::str(py::str(" ").attr("join")(text.attr("split")())));
    }
}

}  // namespace

void bind_hash(py::module_& module) {
    choose_kernels();
    if (PyModule_AddFunctions(module.ptr(), mmkey::python::functions) != 0) throw py::error_already_set();
    mmkey::python::bind_hashers(module);
    module.def("kernels", &mmkey::python::kernel_table,
               "The kernel in use and those this CPU runs (widest first), by algorithm and operation.");
    module.def("selftest", &mmkey::selftest, py::call_guard<py::gil_scoped_release>(),
               "Known answers for every kernel that this CPU runs. Raises RuntimeError naming the first that fails.");
}
