// Engines: a request is checked first, then its contents are hashed, then it is prepared; keys come from what is prepared.
#include "checked.h"
#include "integers.h"
#include "mmkey/block_chain.h"
#include "mmkey/keys.h"
#include "names.h"
#include "values.h"

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <cstring>
#include <memory>
#include <utility>
#include <vector>

namespace py = pybind11;
using mmkey::Digest;
using mmkey::KeyEngine;
using mmkey::Prepared;

namespace {

py::bytes to_bytes(const Digest& digest) { return {reinterpret_cast<const char*>(digest.data()), digest.size()}; }

KeyEngine make_engine(const py::object& strategy, const py::object& algorithm, const py::object& block_size,
                      const py::object& model_id, const py::object& config, const py::object& revision,
                      const py::object& adapter, const py::object& adapter_revision, const py::object& salt) {
    const auto chosen = names::strategy(strategy);
    const auto hash = names::algorithm(algorithm);
    const std::uint64_t size = to_uint(block_size, "block_size");
    const auto optional_text = [](const py::object& text, const char* field) {
        return text.is_none() ? std::nullopt : std::optional(to_text(text, field));
    };
    mmkey::Scope scope;
    if (!model_id.is_none()) scope.model_id = to_text(model_id, "model_id");
    scope.revision = optional_text(revision, "revision");
    scope.config = to_map(config, "config");
    if (!adapter.is_none()) scope.adapter = {to_text(adapter, "adapter"), optional_text(adapter_revision, "adapter")};
    scope.salt = to_salt(salt);
    if (chosen != mmkey::Strategy::C) return {chosen, hash, size, scope.salt};
    if (model_id.is_none()) throw mmkey::InvalidRequest("model_id", "is None; strategy C needs the model's name");
    if (config.is_none())
        throw mmkey::InvalidRequest("config", "is None; strategy C needs a map, which may be empty: {}");
    return {scope, hash, size};
}

std::vector<py::array_t<std::uint8_t>> block_keys(const KeyEngine& engine, std::span<const Prepared* const> requests,
                                                  bool partial) {
    std::vector<py::array_t<std::uint8_t>> arrays;
    std::vector<mmkey::BlockKeys> wanted;
    std::size_t tokens = 0;
    for (const Prepared* prepared : requests) {
        if (prepared->seed != engine.seed()) throw mmkey::InvalidRequest("request", "was prepared by another engine");
        const auto count = mmkey::block_count(*prepared, partial);
        auto& keys = arrays.emplace_back(std::vector{py::ssize_t(count), py::ssize_t(sizeof(Digest))});
        wanted.push_back({prepared, {reinterpret_cast<Digest*>(keys.mutable_data()), count}});
        tokens += prepared->token_ids.size();
    }
    without_gil(tokens, [&] { mmkey::block_keys_many(wanted); });
    return arrays;
}

py::tuple item_texts(const Prepared& prepared) {
    const auto& digests = prepared.identities.item_digests;
    py::tuple texts(digests.size());
    for (std::size_t n = 0; n < digests.size(); ++n)
        texts[prepared.normal.appearance[n]] = mmkey::format_item(digests[n], prepared.seed.algorithm);
    return texts;
}

std::string repr(const Prepared& p) {
    return std::string("<mmkey.Prepared ") + mmkey::letter(p.seed.strategy) + " " +
           std::string(mmkey::name(p.seed.algorithm)) + ": " + std::to_string(p.token_ids.size()) + " tokens, " +
           std::to_string(p.full_blocks()) + " blocks of " + std::to_string(p.seed.block_size) +
           (p.unsafe.empty() ? ">" : ", unsafe>");
}

}  // namespace

void bind_engine(py::module_& m) {
    py::class_<Checked>(m, "Checked");
    py::class_<mmkey::ChainSeed>(m, "ChainSeed");
    auto prepared = py::class_<Prepared, std::shared_ptr<Prepared>>(
        m, "Prepared",
        "A request validated, in normal form and with its media hashed: what keys and the prefix index are asked with.\n\n"
        "Made by KeyEngine.prepare; immutable, holds no media.");
    prepared.attr("__module__") = "mmkey";
    prepared
        .def_property_readonly(
            "unsafe", [](const Prepared& p) { return py::tuple(py::cast(p.unsafe)); },
            "Why a hit on its keys may be false: a tuple of reasons, empty when none is known.")
        .def_property_readonly("item_texts", &item_texts,
                               "mmkey1:item:... of each item in the caller's order: a tuple, empty but for strategy C.")
        .def("__repr__", &repr)
        .def_property_readonly("strategy",
                               [](const Prepared& p) { return std::string(1, mmkey::letter(p.seed.strategy)); })
        .def_property_readonly("algorithm",
                               [](const Prepared& p) { return names::text(mmkey::name(p.seed.algorithm)); })
        .def_property_readonly("block_size", [](const Prepared& p) { return p.seed.block_size; })
        .def_property_readonly("num_tokens", [](const Prepared& p) { return p.token_ids.size(); })
        .def_property_readonly("root", [](const Prepared& p) { return to_bytes(p.seed.root); });
    py::class_<KeyEngine>(m, "Engine")
        .def(py::init(&make_engine), py::arg("strategy"), py::arg("algorithm"), py::arg("block_size"),
             py::arg("model_id"), py::arg("config"), py::arg("revision"), py::arg("adapter"),
             py::arg("adapter_revision"), py::arg("salt"))
        .def_property_readonly("root", [](const KeyEngine& e) { return to_bytes(e.seed().root); })
        .def_property_readonly(
            "scope",
            [](const KeyEngine& e) -> py::object { return e.scope() ? py::object(to_bytes(*e.scope())) : py::none(); })
        .def(
            "check",
            [](const KeyEngine& self, const RequestData& data, const py::tuple& metadata, const py::tuple& kinds,
               const py::object& placeholder_ids) {
                const auto placeholders = to_token_ids(placeholder_ids, "placeholder_ids");
                Checked checked{request_of(data, metadata, kinds), {}};
                checked.normal = self.check(checked.request, placeholders);
                return checked;
            },
            py::arg("request"), py::arg("metadata"), py::arg("kinds"), py::arg("placeholder_ids"))
        .def(
            "prepare",
            [](const KeyEngine& self, Checked& checked, const py::tuple& contents) {
                fill(checked, self.seed().strategy, contents);
                return std::make_shared<Prepared>(self.prepare_checked(checked.request, std::move(checked.normal)));
            },
            py::arg("checked"), py::arg("contents"))
        .def(
            "key",
            [](const KeyEngine& self, const Prepared& prepared) {
                return to_bytes(without_gil(prepared.token_ids.size(), [&] { return self.key(prepared); }));
            },
            py::arg("prepared"))
        .def(
            "block_keys",
            [](const KeyEngine& self, const Prepared& prepared, bool partial) {
                const Prepared* const one = &prepared;
                return block_keys(self, {&one, 1}, partial).front();
            },
            py::arg("prepared"), py::arg("partial"))
        .def(
            "block_keys_many",
            [](const KeyEngine& self, const py::list& prepared, bool partial) {
                std::vector<const Prepared*> requests;
                for (const py::handle one : prepared) requests.push_back(&one.cast<const Prepared&>());
                return block_keys(self, requests, partial);
            },
            py::arg("prepared"), py::arg("partial"))
        .def_property_readonly("seed", [](const KeyEngine& self) { return self.seed(); });
    m.def(
        "format_key",
        [](const py::bytes& key, const py::object& strategy, const py::object& algorithm, const py::object& level) {
            Digest digest;
            std::memcpy(digest.data(), PyBytes_AS_STRING(key.ptr()), digest.size());
            return mmkey::format_key(digest, names::strategy(strategy), names::algorithm(algorithm),
                                     to_text(level, "level"));
        },
        py::arg("key"), py::arg("strategy"), py::arg("algorithm"), py::arg("level"));
}
