#include "pixels.h"

#include <string_view>
#include <utility>

namespace py = pybind11;

namespace mmkey::python {

namespace {

struct ArrowSchema {
    const char* format;
    const char* name;
    const char* metadata;
    std::int64_t flags;
    std::int64_t n_children;
    ArrowSchema** children;
    ArrowSchema* dictionary;
    void (*release)(ArrowSchema*);
    void* private_data;
};

struct ArrowArray {
    std::int64_t length;
    std::int64_t null_count;
    std::int64_t offset;
    std::int64_t n_buffers;
    std::int64_t n_children;
    const void** buffers;
    ArrowArray** children;
    ArrowArray* dictionary;
    void (*release)(ArrowArray*);
    void* private_data;
};

template <typename T>
const T& inside(const py::capsule& capsule, const char* name) {
    const auto* pointer = static_cast<const T*>(PyCapsule_GetPointer(capsule.ptr(), name));
    if (pointer == nullptr) throw py::error_already_set();
    if (pointer->release == nullptr) throw py::value_error("the Arrow data was taken by somebody else");
    return *pointer;
}

std::size_t width_of(std::string_view format) {
    if (format == "C" || format == "c") return 1;
    if (format == "S" || format == "s") return 2;
    if (format == "I" || format == "i" || format == "f") return 4;
    return 0;
}

bool plain(const ArrowArray& array, std::size_t length) {
    return array.length == static_cast<std::int64_t>(length) && array.null_count == 0 && array.offset == 0 &&
           array.dictionary == nullptr;
}

}  // namespace

Pixels::Pixels(py::capsule schema, py::capsule array, std::size_t count, std::size_t stride, std::size_t kept)
    : array_(std::move(array)), data_(nullptr), count_(count), stride_(stride), kept_(kept) {
    const auto& type = inside<ArrowSchema>(schema, "arrow_schema");
    const auto& values = inside<ArrowArray>(array_, "arrow_array");
    const ArrowArray* numbers = nullptr;
    if (type.n_children == 0 && values.n_children == 0) {
        if (width_of(type.format) == stride && plain(values, count)) numbers = &values;
    } else if (type.n_children == 1 && values.n_children == 1 && std::string_view(type.format) == "+w:4" &&
               stride == 4) {
        const ArrowArray& child = *values.children[0];
        if (width_of(type.children[0]->format) == 1 && plain(values, count) && plain(child, 4 * count))
            numbers = &child;
    }
    if (numbers != nullptr && numbers->n_buffers == 2) data_ = static_cast<const std::uint8_t*>(numbers->buffers[1]);
    if (data_ == nullptr || (kept != stride && (kept != 3 || stride != 4)))
        throw py::value_error("the Arrow data is no picture of this form");
}

}  // namespace mmkey::python
