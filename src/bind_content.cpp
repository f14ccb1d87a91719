// Contents: digests of a kind, and the messages that they are digests of.
#include "buffer.h"
#include "integers.h"
#include "mmkey/hash.h"
#include "mmkey/item.h"
#include "mmkey/keys.h"
#include "names.h"
#include "pixels.h"
#include "values.h"

#include <pybind11/pybind11.h>

#include <algorithm>
#include <vector>

namespace py = pybind11;
using mmkey::Bytes;
using mmkey::Content;
using mmkey::Digest;
using mmkey::python::BufferView;
using mmkey::python::Pixels;

namespace {

py::bytes to_bytes(Bytes bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

BufferView take(py::handle object, const char* field) {
    BufferView view;
    if (!view.take(object.ptr(), {field})) throw py::error_already_set();
    return view;
}

Content make_content(const py::object& kind, const py::object& algorithm, const py::object& digest) {
    Content content{names::content_kind(kind), names::algorithm(algorithm), {}};
    const BufferView view = take(digest, "digest");
    if (view.bytes().size() != content.digest.size())
        throw mmkey::InvalidRequest("digest", "has " + std::to_string(view.bytes().size()) + " bytes; allowed are 32");
    std::ranges::copy(view.bytes(), content.digest.begin());
    return content;
}

py::bytes array_head(const py::object& dtype, const py::object& shape, const py::object& attrs,
                     std::uint64_t data_size) {
    const auto extents = to_numbers(shape, "shape");
    return to_bytes(mmkey::array_head(to_text(dtype, "dtype"), *extents, to_map(attrs, "attrs"), data_size));
}

py::bytes frames_message(const py::list& contents) {
    std::vector<Content> frames;
    for (const py::handle content : contents) frames.push_back(content.cast<const Content&>());
    return to_bytes(mmkey::frames_message(frames));
}

py::list digest_messages(const py::list& messages, const py::object& algorithm, unsigned threads) {
    const auto chosen = names::algorithm(algorithm);
    std::vector<BufferView> views;
    std::vector<mmkey::Message> parts;
    std::size_t total = 0;
    for (const py::handle message : messages) {
        const auto pair = py::reinterpret_borrow<py::tuple>(message);
        views.push_back(take(py::object(pair[0]), "content"));
        const Bytes head = views.back().bytes();
        if (py::isinstance<Pixels>(pair[1])) {
            parts.push_back(py::object(pair[1]).cast<const Pixels&>().message(head));
        } else {
            views.push_back(take(py::object(pair[1]), "content"));
            parts.push_back({head, views.back().bytes()});
        }
        total += parts.back().head.size() + parts.back().body.size();
    }
    std::vector<Digest> digests(parts.size());
    {
        const mmkey::python::ReleaseGil released(total);
        mmkey::digest_many(chosen, parts, digests, threads);
    }
    py::list out;
    for (const Digest& digest : digests) out.append(to_bytes(digest));
    return out;
}

}  // namespace

void bind_content(py::module_& m) {
    py::class_<Content>(m, "Content")
        .def(py::init(&make_content), py::arg("kind"), py::arg("algorithm"), py::arg("digest"))
        .def_property_readonly("kind", [](const Content& c) { return names::text(mmkey::name(c.kind)); })
        .def_property_readonly("algorithm", [](const Content& c) { return names::text(mmkey::name(c.algorithm)); })
        .def_property_readonly("digest", [](const Content& c) { return to_bytes(c.digest); })
        .def("text", [](const Content& c) { return mmkey::format_content(c); });
    py::class_<Pixels>(m, "Pixels")
        .def(py::init<py::capsule, py::capsule, std::size_t, std::size_t, std::size_t>(), py::arg("schema"),
             py::arg("array"), py::arg("count"), py::arg("stride"), py::arg("kept"))
        .def_property_readonly("nbytes", &Pixels::size);
    m.def("array_head", &array_head, py::arg("dtype"), py::arg("shape"), py::arg("attrs"), py::arg("data_size"));
    m.def("frames_message", &frames_message, py::arg("contents"));
    m.def(
        "opaque_message",
        [](const py::object& identifier, const py::object& name_space) {
            return to_bytes(mmkey::opaque_message(to_text(identifier, "identifier"), to_text(name_space, "namespace")));
        },
        py::arg("identifier"), py::arg("namespace"));
    m.def("digest_messages", &digest_messages, py::arg("messages"), py::arg("algorithm"), py::arg("threads"));
}
