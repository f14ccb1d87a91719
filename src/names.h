// The closed sets of names that cross the binding as text.
#pragma once

#include "errors.h"
#include "mmkey/error.h"
#include "mmkey/item.h"
#include "mmkey/request.h"

#include <pybind11/pybind11.h>

#include <array>
#include <string>
#include <string_view>

namespace names {

/// The member of `all` whose name `text` is; an error under `field` lists them.
template <typename T, std::size_t N, typename NameOf>
T parse(pybind11::handle text, const char* field, const std::array<T, N>& all, NameOf&& name_of) {
    std::string allowed;
    if (PyUnicode_Check(text.ptr())) {
        Py_ssize_t size;
        const char* utf8 = PyUnicode_AsUTF8AndSize(text.ptr(), &size);
        if (utf8 == nullptr) PyErr_Clear();
        for (const T member : all) {
            if (utf8 != nullptr && std::string_view(utf8, std::size_t(size)) == name_of(member)) return member;
            allowed += (allowed.empty() ? "" : ", ") + std::string(name_of(member));
        }
        throw mmkey::InvalidRequest(field, shown(text) + " is unknown; allowed are " + allowed);
    }
    for (const T member : all) allowed += (allowed.empty() ? "" : ", ") + std::string(name_of(member));
    throw UnsupportedType(field, shown(text) + " is not text; allowed are " + allowed);
}

inline mmkey::Algorithm algorithm(pybind11::handle text, const char* field = "algorithm") {
    constexpr std::array all{mmkey::Algorithm::sha256, mmkey::Algorithm::blake3};
    return parse(text, field, all, [](auto a) { return mmkey::name(a); });
}

inline mmkey::Strategy strategy(pybind11::handle text) {
    constexpr std::array all{mmkey::Strategy::A, mmkey::Strategy::B, mmkey::Strategy::C};
    return parse(text, "strategy", all, [](auto s) { return std::string(1, mmkey::letter(s)); });
}

inline mmkey::Modality modality(pybind11::handle text) {
    using enum mmkey::Modality;
    constexpr std::array all{image, video, audio, embeds};
    return parse(text, "modality", all, [](auto m) { return mmkey::name(m); });
}

inline mmkey::ContentKind content_kind(pybind11::handle text) {
    using enum mmkey::ContentKind;
    constexpr std::array all{bytes, array, frames, opaque};
    return parse(text, "kind", all, [](auto k) { return mmkey::name(k); });
}

inline pybind11::str text(std::string_view name) { return {name.data(), name.size()}; }

}  // namespace names
