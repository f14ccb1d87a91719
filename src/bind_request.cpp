// Requests without their contents: token ids, layout and order; and the metadata of items.
#include "integers.h"
#include "mmkey/item.h"
#include "mmkey/request.h"
#include "names.h"
#include "request_data.h"
#include "values.h"

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <memory>
#include <unordered_set>
#include <utility>

namespace py = pybind11;
using mmkey::ItemMetadata;

namespace {

std::optional<std::uint64_t> optional_uint(const py::object& object, const char* field) {
    if (object.is_none()) return {};
    return to_uint(object, field);
}

mmkey::Sampling to_sampling(const py::object& given) {
    mmkey::Sampling sampling;
    py::dict other;
    std::unordered_set<std::string> names;
    for (const py::handle pair : to_pairs(given, "sampling")) {
        const auto both = py::reinterpret_borrow<py::tuple>(pair);
        const py::object key = both[0], value = both[1];
        const bool is_text = PyUnicode_Check(key.ptr());
        const std::string name = is_text ? to_text(key, "sampling") : "";
        const auto field = "sampling." + name;
        if (is_text && !names.insert(name).second)
            throw mmkey::InvalidRequest("sampling", "holds the key " + shown(key) + " twice");
        if (name == "frame_indices") {
            if (value.is_none()) continue;
            const auto indices = to_token_ids(value, field);
            if (indices.size() == 0) throw mmkey::InvalidRequest(field, "is empty; a video has at least one frame");
            sampling.frame_indices.assign(indices.data(), indices.data() + indices.size());
        } else if (name == "source_fps") {
            sampling.source_fps = to_rate(value, field);
        } else if (name == "sampled_fps") {
            sampling.sampled_fps = to_rate(value, field);
        } else if (name == "total_frames") {
            if (!value.is_none()) sampling.total_frames = to_uint(value, field);
        } else {
            other[key] = value;
        }
    }
    sampling.other = to_entries(other, "sampling");
    return sampling;
}

std::shared_ptr<ItemMetadata> make_metadata(const py::object& modality, const py::object& original_size,
                                            const py::object& resized_size, const py::object& patch_grid,
                                            const py::object& num_visual_tokens, const py::object& sampling,
                                            const py::object& processing) {
    mmkey::ItemFields fields;
    fields.modality = names::modality(modality);
    fields.original_size = to_numbers(original_size, "original_size");
    fields.resized_size = to_numbers(resized_size, "resized_size");
    fields.patch_grid = to_numbers(patch_grid, "patch_grid");
    fields.num_visual_tokens = optional_uint(num_visual_tokens, "num_visual_tokens");
    if (!sampling.is_none()) fields.sampling = to_sampling(sampling);
    fields.processing = to_entries(processing, "processing");
    return std::make_shared<ItemMetadata>(std::move(fields));
}

std::vector<std::uint32_t> frame_indices(const ItemMetadata& item) {
    return item.fields().sampling ? item.fields().sampling->frame_indices : std::vector<std::uint32_t>();
}

py::object to_tuple(const std::optional<std::vector<std::uint64_t>>& numbers) {
    if (!numbers) return py::none();
    py::tuple out(numbers->size());
    for (std::size_t i = 0; i < numbers->size(); ++i) out[i] = (*numbers)[i];
    return out;
}

std::shared_ptr<RequestData> make_request(const py::object& token_ids, const py::object& layout,
                                          const py::object& order) {
    return std::make_shared<RequestData>(
        RequestData{to_token_ids(token_ids, "token_ids"), to_layout(layout, "layout"), to_numbers(order, "order")});
}

/// A read-only array over the request's own memory, which it keeps alive.
py::array_t<std::uint32_t> view_of(const mmkey::TokenIds& ids) {
    const py::capsule owner(new mmkey::TokenIds(ids), [](void* p) { delete static_cast<mmkey::TokenIds*>(p); });
    py::array_t<std::uint32_t> view({py::ssize_t(ids.size())}, ids.data(), owner);
    view.attr("flags").attr("writeable") = false;
    return view;
}

py::object layout_of(const RequestData& request) {
    if (!request.layout) return py::none();
    py::tuple out(request.layout->size());
    for (std::size_t i = 0; i < out.size(); ++i)
        out[i] = py::make_tuple((*request.layout)[i].offset, (*request.layout)[i].length);
    return out;
}

bool equal(const RequestData& a, const RequestData& b) {
    return std::ranges::equal(a.token_ids.span(), b.token_ids.span()) && a.layout == b.layout && a.order == b.order;
}

}  // namespace

void bind_request(py::module_& m) {
    py::class_<ItemMetadata, std::shared_ptr<ItemMetadata>>(m, "ItemMetadata")
        .def(py::init(&make_metadata), py::arg("modality"), py::arg("original_size"), py::arg("resized_size"),
             py::arg("patch_grid"), py::arg("num_visual_tokens"), py::arg("sampling"), py::arg("processing"))
        .def_property_readonly("original_size",
                               [](const ItemMetadata& i) { return to_tuple(i.fields().original_size); })
        .def_property_readonly("resized_size", [](const ItemMetadata& i) { return to_tuple(i.fields().resized_size); })
        .def_property_readonly("patch_grid", [](const ItemMetadata& i) { return to_tuple(i.fields().patch_grid); })
        .def_property_readonly("num_visual_tokens", [](const ItemMetadata& i) { return i.fields().num_visual_tokens; })
        .def_property_readonly("modality", [](const ItemMetadata& i) { return names::text(mmkey::name(i.modality())); })
        .def_property_readonly("frame_indices",
                               [](const ItemMetadata& i) { return py::tuple(py::cast(frame_indices(i))); })
        .def_property_readonly("encoded", [](const ItemMetadata& i) {
            return py::bytes(reinterpret_cast<const char*>(i.encoded().data()), i.encoded().size());
        });
    py::class_<RequestData, std::shared_ptr<RequestData>>(m, "RequestData")
        .def(py::init(&make_request), py::arg("token_ids"), py::arg("layout"), py::arg("order"))
        .def_property_readonly("token_ids", [](const RequestData& r) { return view_of(r.token_ids); })
        .def_property_readonly("layout", &layout_of)
        .def_property_readonly("order", [](const RequestData& r) { return to_tuple(r.order); })
        .def("__len__", [](const RequestData& r) { return r.token_ids.size(); })
        .def("equal", &equal, py::arg("other"));
}
