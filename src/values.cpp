#include "values.h"

#include "errors.h"
#include "mmkey/error.h"

#include <cmath>
#include <string_view>
#include <unordered_set>
#include <utility>

namespace py = pybind11;
using mmkey::InvalidRequest;
using mmkey::Value;

namespace {

constexpr auto allowed = "allowed are null, bool, int, float, text, bytes, lists and text-keyed maps";

/// Where a value stands; its text is made only for an error.
struct Path {
    const Path* parent;
    py::handle key;  // a text, or nothing for a list
    std::size_t index = 0;

    std::string text(const std::string& field) const {
        if (parent == nullptr) return field;
        const std::string before = parent->text(field);
        if (!key) return before + "[" + std::to_string(index) + "]";
        Py_ssize_t size;  // its own characters: a subclass's __str__ may say, or raise, anything
        const char* utf8 = PyUnicode_AsUTF8AndSize(key.ptr(), &size);
        if (utf8 == nullptr) throw py::error_already_set();
        return before + "." + std::string(utf8, std::size_t(size));
    }
};

/// A view of wider numbers is no byte string: it could be told from its bytes.
bool is_byte_view(PyObject* object) {
    if (!PyMemoryView_Check(object)) return false;
    const Py_buffer* view = PyMemoryView_GET_BUFFER(object);
    return view->ndim == 1 && (view->format == nullptr || std::string_view(view->format) == "B");
}

bool is_mapping(py::handle object) {
    return PyDict_Check(object.ptr()) || py::isinstance(object, py::module_::import("collections.abc").attr("Mapping"));
}

/// The bytes of a buffer; what cannot be read, as a released view, is no value.
std::vector<std::uint8_t> copy_of(py::handle buffer, const std::string& field, const std::string& instead) {
    const auto copy = py::reinterpret_steal<py::object>(PyBytes_FromObject(buffer.ptr()));
    if (!copy) {
        PyErr_Clear();
        throw UnsupportedType(field, "is a buffer that cannot be read; " + instead);
    }
    const auto* data = reinterpret_cast<const std::uint8_t*>(PyBytes_AS_STRING(copy.ptr()));
    return {data, data + PyBytes_GET_SIZE(copy.ptr())};
}

/// The items of a mapping in a list of our own, since converting a value may run code that changes the mapping.
py::list pairs_of(py::handle mapping, const std::string& field) {
    py::list pairs(mapping.attr("items")());
    for (const py::handle pair : pairs)
        if (!PyTuple_Check(pair.ptr()) || PyTuple_GET_SIZE(pair.ptr()) != 2)
            throw UnsupportedType(field, "is a map whose items are not pairs, but " + shown(pair));
    return pairs;
}

void require_mapping(py::handle object, const std::string& field) {
    if (!is_mapping(object))
        throw UnsupportedType(field,
                              "is a " + std::string(Py_TYPE(object.ptr())->tp_name) + "; allowed is a text-keyed map");
}

class Converter {
  public:
    explicit Converter(const std::string& field) : field_(field) {}

    Value convert(py::handle object, const Path& path, unsigned level) const {
        PyObject* const o = object.ptr();
        if (object.is_none()) return Value::null();
        if (PyBool_Check(o)) return Value::boolean(o == Py_True);
        if (PyLong_Check(o)) return integer(object, path);
        if (PyFloat_Check(o)) return Value::real(PyFloat_AS_DOUBLE(o));
        if (PyUnicode_Check(o)) return Value::text(to_text(object, path.text(field_)));
        if (PyBytes_Check(o) || PyByteArray_Check(o) || is_byte_view(o)) return byte_string(object, path);
        if (PyList_Check(o) || PyTuple_Check(o)) return list(object, path, level);
        if (const auto scalar = numpy_scalar(object)) return convert(scalar, path, level);
        if (is_mapping(object)) return Value::map(entries(object, path, level));
        throw UnsupportedType(path.text(field_), "is a " + std::string(Py_TYPE(o)->tp_name) + "; " + allowed);
    }

    Value::Entries entries(py::handle mapping, const Path& path, unsigned level) const {
        check_level(path, level);
        Value::Entries found;
        std::unordered_set<std::string> names;
        for (const py::handle pair : pairs_of(mapping, path.text(field_))) {
            const auto both = py::reinterpret_borrow<py::tuple>(pair);
            const py::object key = both[0];
            if (!PyUnicode_Check(key.ptr()))
                throw UnsupportedType(path.text(field_), "has the key " + shown(key) + "; keys are text");
            const Path inner{&path, key};
            std::string name = to_text(key, path.text(field_));
            if (!names.insert(name).second)  // by a subclass of str that is equal to itself alone
                throw InvalidRequest(path.text(field_), "holds the key " + shown(key) + " twice");
            found.emplace_back(std::move(name), convert(both[1], inner, level + 1));
        }
        return found;
    }

  private:
    void check_level(const Path& path, unsigned level) const {
        if (level > Value::max_depth)
            throw InvalidRequest(path.text(field_),
                                 "nests deeper than " + std::to_string(Value::max_depth) + " levels");
    }

    Value integer(py::handle object, const Path& path) const {
        // By int's own functions: a subclass counts as the int that it is, whatever its operators say.
        int overflow = 0;
        const long long small = PyLong_AsLongLongAndOverflow(object.ptr(), &overflow);
        const bool negative = overflow != 0 ? overflow < 0 : small < 0;
        auto magnitude = py::reinterpret_borrow<py::object>(object);
        if (negative) magnitude = py::reinterpret_steal<py::object>(PyLong_Type.tp_as_number->nb_invert(object.ptr()));
        if (!magnitude) throw py::error_already_set();
        const std::uint64_t argument = PyLong_AsUnsignedLongLong(magnitude.ptr());
        if (argument == UINT64_MAX && PyErr_Occurred()) {
            PyErr_Clear();
            throw InvalidRequest(path.text(field_), "is an integer outside [-2**64, 2**64 - 1]");
        }
        return negative ? Value::negative(argument) : Value::uint(argument);
    }

    Value byte_string(py::handle object, const Path& path) const {
        return Value::bytes(copy_of(object, path.text(field_), allowed));
    }

    Value list(py::handle object, const Path& path, unsigned level) const {
        check_level(path, level);
        const auto copy = py::reinterpret_steal<py::tuple>(PySequence_Tuple(object.ptr()));
        if (!copy) throw py::error_already_set();
        std::vector<Value> elements;
        for (std::size_t i = 0; i < copy.size(); ++i) {
            const Path inner{&path, py::handle(), i};
            elements.push_back(convert(copy[i], inner, level + 1));
        }
        return Value::array(elements);
    }

    /// The bool, int or float of a NumPy scalar; nothing for any other object. timedelta64 is a signed integer to
    /// NumPy, and no number to us.
    static py::object numpy_scalar(py::handle object) {
        const auto numpy = py::module_::import("numpy");
        if (!py::isinstance(object, numpy.attr("generic"))) return {};
        const bool number = py::isinstance(object, numpy.attr("bool_")) ||
                            py::isinstance(object, numpy.attr("integer")) ||
                            py::isinstance(object, numpy.attr("floating"));
        if (!number || py::isinstance(object, numpy.attr("timedelta64"))) return {};
        py::object plain = object.attr("item")();
        const bool is_plain = PyLong_Check(plain.ptr()) || PyFloat_Check(plain.ptr());  // a longdouble stays what it is
        return is_plain ? plain : py::object();
    }

    const std::string& field_;
};

}  // namespace

Value to_value(py::handle object, const std::string& field) {
    return Converter(field).convert(object, Path{nullptr, py::handle()}, 1);
}

py::list to_pairs(py::handle mapping, const std::string& field) {
    require_mapping(mapping, field);
    return pairs_of(mapping, field);
}

Value::Entries to_entries(py::handle mapping, const std::string& field) {
    if (mapping.is_none()) return {};
    require_mapping(mapping, field);
    return Converter(field).entries(mapping, Path{nullptr, py::handle()}, 1);
}

Value to_map(py::handle mapping, const std::string& field) {
    try {
        return Value::map(to_entries(mapping, field));
    } catch (const InvalidRequest& error) {
        if (error.field() != "value") throw;
        throw InvalidRequest(field, error.problem());
    }
}

std::string to_text(py::handle object, const std::string& field) {
    if (!PyUnicode_Check(object.ptr())) throw UnsupportedType(field, shown(object) + " is not text");
    Py_ssize_t size;
    const char* utf8 = PyUnicode_AsUTF8AndSize(object.ptr(), &size);
    if (utf8 == nullptr) {
        PyErr_Clear();
        throw InvalidRequest(field, "holds a lone surrogate, which has no UTF-8 form");
    }
    return {utf8, std::size_t(size)};
}

std::optional<std::vector<std::uint8_t>> to_salt(py::handle object) {
    if (object.is_none()) return {};
    if (PyUnicode_Check(object.ptr())) return mmkey::to_vector(mmkey::as_bytes(to_text(object, "salt")));
    if (!PyBytes_Check(object.ptr()) && !PyByteArray_Check(object.ptr()) && !PyMemoryView_Check(object.ptr()))
        throw UnsupportedType("salt",
                              "is a " + std::string(Py_TYPE(object.ptr())->tp_name) + "; allowed are bytes or text");
    return copy_of(object, "salt", "allowed are bytes or text");
}

std::optional<double> to_rate(py::handle object, const std::string& field) {
    if (object.is_none()) return {};
    const auto rate = to_value(object, field).number();
    if (!rate) throw UnsupportedType(field, shown(object) + " is not a number");
    if (!std::isfinite(*rate) || *rate <= 0)
        throw InvalidRequest(field, shown(object) + " is not a finite positive number");
    return rate;
}
