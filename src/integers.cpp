#include "integers.h"

#include "errors.h"
#include "mmkey/error.h"

#include <bit>
#include <cstring>
#include <limits>
#include <memory>
#include <type_traits>

#if PY_VERSION_HEX < 0x030b0000
#include <longintrepr.h>
#endif

namespace py = pybind11;
using mmkey::InvalidRequest;
using mmkey::TokenIds;

namespace {

constexpr auto top_id = std::numeric_limits<std::uint32_t>::max();
constexpr auto ids_allowed = "a list, tuple or one-dimensional array of integers";

std::string at(const std::string& field, std::size_t i) { return field + "[" + std::to_string(i) + "]"; }

std::string type_name(py::handle object) { return Py_TYPE(object.ptr())->tp_name; }

py::object numpy(const char* name) { return py::module_::import("numpy").attr(name); }

bool is_integer(py::handle object) {
    if (PyLong_Check(object.ptr())) return !PyBool_Check(object.ptr());
    return PyIndex_Check(object.ptr()) && py::isinstance(object, numpy("integer"));
}

/// A small exact int without a call: one digit of 30 bits. -1: not one.
inline std::int64_t compact(PyObject* object) noexcept {
    if (Py_TYPE(object) != &PyLong_Type) return -1;
#if PY_VERSION_HEX >= 0x030c0000
    auto* number = reinterpret_cast<PyLongObject*>(object);
    return PyUnstable_Long_IsCompact(number) ? std::int64_t(PyUnstable_Long_CompactValue(number)) : -1;
#else
    const auto size = Py_SIZE(object);
    if (size == 1) return reinterpret_cast<PyLongObject*>(object)->ob_digit[0];
    return size == 0 ? 0 : -1;
#endif
}

class Ids {
  public:
    explicit Ids(std::size_t size) : size_(size), data_(std::make_shared_for_overwrite<std::uint32_t[]>(size)) {}

    std::uint32_t* data() noexcept { return data_.get(); }
    TokenIds done() && { return {std::move(data_), size_}; }

  private:
    std::size_t size_;
    std::shared_ptr<std::uint32_t[]> data_;
};

/// `items` is a tuple that nobody else holds, or a list under the GIL, whose exact ints run no code of others.
TokenIds from_sequence(py::handle sequence, const std::string& field) {
    py::object held = py::reinterpret_borrow<py::object>(sequence);
    const auto is_compact = [&] {
#ifdef Py_GIL_DISABLED
        return false;
#else
        return true;
#endif
    };
    if (!is_compact() && PyList_Check(held.ptr())) held = py::reinterpret_steal<py::object>(PyList_AsTuple(held.ptr()));
    const auto size = std::size_t(PySequence_Fast_GET_SIZE(held.ptr()));
    Ids ids(size);
    PyObject** items = PySequence_Fast_ITEMS(held.ptr());
    constexpr std::size_t ahead = 32;  // the ints lie anywhere: fetch those of some 100 ns from now
    std::uint32_t* const to = ids.data();
    std::size_t i = 0;
    for (; i < size; ++i) {
        if (i + ahead < size) __builtin_prefetch(items[i + ahead]);
        const std::int64_t id = compact(items[i]);
        if (id < 0) break;
        to[i] = std::uint32_t(id);
    }
    if (i == size) return std::move(ids).done();
    // Whatever is not compact may run code that changes the list: go on with a copy of it.
    const auto copy = py::reinterpret_steal<py::tuple>(PySequence_Tuple(held.ptr()));
    if (copy.size() != size) throw InvalidRequest(field, "changed while it was read");
    for (; i < size; ++i) ids.data()[i] = std::uint32_t(to_uint(copy[i], at(field, i), top_id));
    return std::move(ids).done();
}

template <typename T>
void convert(const char* from, py::ssize_t stride, std::size_t count, bool swapped, std::uint32_t* to,
             const std::string& field) {
    for (std::size_t i = 0; i < count; ++i, from += stride) {
        T value;
        std::memcpy(&value, from, sizeof value);
        if (swapped) {
            char bytes[sizeof value];
            for (std::size_t b = 0; b < sizeof value; ++b) bytes[b] = from[sizeof value - 1 - b];
            std::memcpy(&value, bytes, sizeof value);
        }
        bool fits = true;
        if constexpr (std::is_signed_v<T>) fits = value >= 0;
        if constexpr (sizeof(T) > 4) fits = fits && std::uint64_t(value) <= top_id;
        if (!fits) throw InvalidRequest(at(field, i), std::to_string(value) + " is not an integer in [0, 2**32)");
        to[i] = std::uint32_t(value);
    }
}

struct View {
    Py_buffer buffer;
    View(py::handle object) {
        if (PyObject_GetBuffer(object.ptr(), &buffer, PyBUF_FULL_RO) != 0) throw py::error_already_set();
    }
    View(const View&) = delete;
    ~View() { PyBuffer_Release(&buffer); }
};

TokenIds from_buffer(py::handle object, const std::string& field) {
    const View view(object);
    const Py_buffer& b = view.buffer;
    if (b.ndim != 1)
        throw InvalidRequest(field, "has " + std::to_string(b.ndim) + " dimensions; allowed is " + ids_allowed);
    std::string format = b.format == nullptr ? "B" : b.format;
    bool swapped = false;
    if (format.size() == 2 && std::strchr("@=<>!", format[0]) != nullptr) {
        swapped = format[0] == '>' || format[0] == '!';
        format.erase(0, 1);
    }
    const auto count = std::size_t(b.shape[0]);
    if (b.suboffsets != nullptr && b.suboffsets[0] >= 0) throw UnsupportedType(field, "is a buffer with suboffsets");
    Ids ids(count);
    const auto* from = static_cast<const char*>(b.buf);
    const py::ssize_t stride = b.strides == nullptr ? b.itemsize : b.strides[0];
    const bool is_signed = format.size() == 1 && std::strchr("bhilqn", format[0]) != nullptr;
    const bool is_unsigned = format.size() == 1 && std::strchr("BHILQN", format[0]) != nullptr;
    const auto run = [&]<typename T>(T) { convert<T>(from, stride, count, swapped, ids.data(), field); };
    if (is_unsigned && b.itemsize == 4 && stride == 4 && !swapped) {
        std::memcpy(ids.data(), from, 4 * count);
    } else if (is_unsigned) {
        if (b.itemsize == 1) run(std::uint8_t{});
        if (b.itemsize == 2) run(std::uint16_t{});
        if (b.itemsize == 4) run(std::uint32_t{});
        if (b.itemsize == 8) run(std::uint64_t{});
    } else if (is_signed) {
        if (b.itemsize == 1) run(std::int8_t{});
        if (b.itemsize == 2) run(std::int16_t{});
        if (b.itemsize == 4) run(std::int32_t{});
        if (b.itemsize == 8) run(std::int64_t{});
    } else {
        throw UnsupportedType(field, "is an array of format '" + format + "'; allowed is " + ids_allowed);
    }
    return std::move(ids).done();
}

bool is_byte_string(py::handle object) {
    if (PyBytes_Check(object.ptr()) || PyByteArray_Check(object.ptr())) return true;
    if (type_name(object) == "mmap.mmap") return true;
    // A view of bytes as wider integers, by cast(), is an array like any other.
    if (!PyMemoryView_Check(object.ptr()) || PyMemoryView_GET_BUFFER(object.ptr())->itemsize != 1) return false;
    PyObject* base = PyMemoryView_GET_BASE(object.ptr());
    return base != nullptr && is_byte_string(base);
}

bool is_masked(py::handle object) {
    return py::isinstance(object, py::module_::import("numpy.ma").attr("MaskedArray"));
}

/// An array that is no buffer itself: on which device it lies is asked first, since reading another's would crash.
py::object as_array(py::handle object, const std::string& field) {
    if (py::hasattr(object, "__dlpack_device__")) {
        const py::object device = object.attr("__dlpack_device__")();
        const py::object cpu = py::make_tuple(1, 0);
        if (!device.equal(cpu))
            throw UnsupportedType(field,
                                  "lies on DLPack device " + shown(device) + "; token ids are read from the CPU");
        return numpy("from_dlpack")(object);
    }
    if (py::hasattr(object, "__array_interface__")) return numpy("asarray")(object);
    throw UnsupportedType(field, "is a " + type_name(object) + "; allowed is " + ids_allowed);
}

/// An array of dates or time spans.
bool is_time(py::handle object) {
    const py::object kind = py::getattr(py::getattr(object, "dtype", py::none()), "kind", py::none());
    return kind.equal(py::str("m")) || kind.equal(py::str("M"));
}

/// A list or tuple as it is, an array as a list. Dates and time spans are no numbers, though some become ints in one.
py::object to_list(py::handle object, const std::string& field, const char* allowed) {
    if (PyList_Check(object.ptr()) || PyTuple_Check(object.ptr())) return py::reinterpret_borrow<py::object>(object);
    const auto wrong = [&] { return UnsupportedType(field, shown(object) + " is not " + allowed); };
    if (!py::hasattr(object, "tolist")) throw wrong();
    if (is_time(object)) throw wrong();
    py::object list = object.attr("tolist")();
    if (!PyList_Check(list.ptr())) throw wrong();
    return list;
}

}  // namespace

std::uint64_t to_uint(py::handle object, const std::string& field, std::uint64_t top) {
    if (!is_integer(object)) throw UnsupportedType(field, shown(object) + " is not an integer");
    const auto index = py::reinterpret_steal<py::object>(PyNumber_Index(object.ptr()));
    if (!index) throw py::error_already_set();
    const std::uint64_t value = PyLong_AsUnsignedLongLong(index.ptr());
    const bool overflow = value == UINT64_MAX && PyErr_Occurred();
    if (overflow) PyErr_Clear();
    if (overflow || value > top)
        throw InvalidRequest(field, shown(index) + " is not an integer in [0, " +
                                        (top == UINT64_MAX ? "2**64"
                                         : top == top_id   ? "2**32"
                                                           : std::to_string(top) + " + 1") +
                                        ")");
    return value;
}

TokenIds to_token_ids(py::handle object, const std::string& field) {
    if (PyList_Check(object.ptr()) || PyTuple_Check(object.ptr())) return from_sequence(object, field);
    if (PyRange_Check(object.ptr())) return from_sequence(py::list(py::reinterpret_borrow<py::object>(object)), field);
    if (is_byte_string(object))
        throw UnsupportedType(field,
                              "is a byte string, which is not a list of ids; allowed is " + std::string(ids_allowed));
    if (is_masked(object)) throw UnsupportedType(field, "is a masked array; allowed is " + std::string(ids_allowed));
    const bool is_buffer = PyObject_CheckBuffer(object.ptr());
    try {
        return is_buffer ? from_buffer(object, field) : from_buffer(as_array(object, field), field);
    } catch (const py::error_already_set& error) {
        // An interrupt is no word about the ids.
        if (!error.matches(PyExc_Exception) || error.matches(PyExc_MemoryError)) throw;
        // NumPy refuses to export what no buffer format can tell (datetimes and the like), and to import from DLPack
        // what it has no dtype for.
        throw UnsupportedType(field, "cannot be read as an array: " + std::string(py::str(error.value())));
    }
}

std::vector<std::int64_t> to_slots(py::handle object, const std::string& field) {
    std::vector<std::int64_t> slots;
    if (is_byte_string(object) || is_masked(object))
        throw UnsupportedType(field, "is a " + type_name(object) + "; allowed is a list or array of integers");
    if (PyObject_CheckBuffer(object.ptr()) && !is_time(object)) {
        const View view(object);
        const Py_buffer& b = view.buffer;
        const std::string_view format = b.format == nullptr ? "B" : b.format;
        if ((format == "l" || format == "q") && b.itemsize == 8 && b.ndim == 1 && PyBuffer_IsContiguous(&b, 'C')) {
            slots.resize(std::size_t(b.shape[0]));
            if (!slots.empty()) std::memcpy(slots.data(), b.buf, 8 * slots.size());
            return slots;
        }
    }
    // Exact small ints run no code of others, but a list may change while one of another type is read.
    py::object sequence = py::reinterpret_borrow<py::object>(object);
    const bool is_sequence = PyList_Check(object.ptr()) || PyTuple_Check(object.ptr()) || PyRange_Check(object.ptr());
    if (!is_sequence) sequence = to_list(object, field, "a list of integers");
    if (!PyTuple_Check(sequence.ptr())) sequence = py::tuple(sequence);
    const auto size = std::size_t(PyTuple_GET_SIZE(sequence.ptr()));
    slots.reserve(size);
    for (std::size_t i = 0; i < size; ++i) {
        PyObject* number = PyTuple_GET_ITEM(sequence.ptr(), py::ssize_t(i));
        const std::int64_t small = compact(number);
        slots.push_back(small >= 0 ? small : std::int64_t(to_uint(number, at(field, i), INT64_MAX)));
    }
    return slots;
}

std::optional<std::vector<std::uint64_t>> to_numbers(py::handle object, const std::string& field) {
    if (object.is_none()) return {};
    const py::object sequence = to_list(object, field, "a list of integers");
    std::vector<std::uint64_t> numbers;
    std::size_t i = 0;
    for (const py::handle number : sequence) numbers.push_back(to_uint(number, at(field, i++)));
    return numbers;
}

std::optional<std::vector<mmkey::Range>> to_layout(py::handle object, const std::string& field) {
    if (object.is_none()) return {};
    const py::object sequence = to_list(object, field, "a list of (offset, length) pairs");
    std::vector<mmkey::Range> layout;
    std::size_t i = 0;
    for (const py::handle pair : sequence) {
        const auto numbers = to_numbers(pair, at(field, i));
        if (!numbers || numbers->size() != 2)
            throw InvalidRequest(at(field, i), shown(pair) + " is not an (offset, length) pair");
        layout.push_back({(*numbers)[0], (*numbers)[1]});
        ++i;
    }
    return layout;
}
