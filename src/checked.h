// What the files that bind engines and chains share: a request that passed its checks and waits for its contents.
#pragma once

#include "integers.h"
#include "mmkey/request.h"
#include "names.h"
#include "request_data.h"

#include <pybind11/pybind11.h>

#include <cstddef>
#include <memory>

struct Checked {
    mmkey::Request request;
    mmkey::NormalForm normal;
};

inline constexpr std::size_t long_work = 4096;  // tokens; below it giving up the GIL costs more than it gives

template <typename Work>
auto without_gil(std::size_t tokens, Work&& work) {
    if (tokens < long_work) return work();
    const pybind11::gil_scoped_release release;
    return work();
}

/// The request of `data` with items of `metadata`, whose contents are known by their kind alone so far.
inline mmkey::Request request_of(const RequestData& data, const pybind11::tuple& metadata,
                                 const pybind11::tuple& kinds) {
    mmkey::Request request{data.token_ids, {}, data.layout, data.order};
    request.items.reserve(metadata.size());
    for (std::size_t i = 0; i < metadata.size(); ++i)
        request.items.push_back({{names::content_kind(kinds[i]), {}, {}},
                                 pybind11::object(metadata[i]).cast<std::shared_ptr<mmkey::ItemMetadata>>()});
    return request;
}

/// One content for each item; strategy A looks at none. An item must never be keyed by a digest that nobody made.
inline void fill(Checked& checked, mmkey::Strategy strategy, const pybind11::tuple& contents) {
    const std::size_t wanted = strategy == mmkey::Strategy::A ? 0 : checked.request.items.size();
    if (contents.size() != wanted)
        throw mmkey::InvalidRequest(
            "items", "have " + std::to_string(contents.size()) + " contents for " + std::to_string(wanted) + " items");
    for (std::size_t i = 0; i < contents.size(); ++i)
        checked.request.items.at(i).content = pybind11::object(contents[i]).cast<const mmkey::Content&>();
}
