#include "errors.h"

namespace py = pybind11;

std::string shown(py::handle object) {
    constexpr std::size_t longest = 80;
    std::string text;
    try {
        text = py::repr(object);
    } catch (const py::error_already_set&) {  // an int of more than 4300 digits, or a repr that fails
        return "this " + std::string(Py_TYPE(object.ptr())->tp_name);
    }
    if (text.size() > longest) {
        text.resize(longest);
        while (!text.empty() && (text.back() & 0xc0) == 0x80) text.pop_back();
        if (!text.empty() && (text.back() & 0x80)) text.pop_back();
        text += "...";
    }
    for (char& c : text)
        if (c == '\n' || c == '\r') c = ' ';
    return text;
}
