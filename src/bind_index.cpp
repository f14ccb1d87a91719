// The prefix index. Whoever holds its lock never waits for the GIL, so calls may keep the GIL while they wait for it. Those
// shorter than a hand-over of the GIL do: two threads that hand it over for a match of a microsecond are slower than one.
#include "errors.h"
#include "fork_lock.h"
#include "integers.h"
#include "mmkey/radix_events.h"
#include "mmkey/radix_index.h"

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <cstring>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace py = pybind11;
using mmkey::BlockEvent;
using mmkey::Digest;
using mmkey::Prepared;
using mmkey::RadixIndex;

namespace {

constexpr std::size_t long_match = 256 * 1024;  // tokens: some 30 us
constexpr std::size_t long_change = 4 * 1024;   // tokens

struct Index {
    Index(const RadixIndex::Options& options, bool events)
        : index([&] {
              RadixIndex::Options listened = options;
              if (events) listened.listener = &log.emplace();
              return listened;
          }()) {}

    /// Does `work`, without the GIL if it is long; InvalidRequest in a child forked while that went on.
    template <typename Work>
    auto at(bool is_long, Work&& work) {
        calls.require_kept("index");
        if (!is_long) return work();
        const py::gil_scoped_release release;
        const mmkey::python::ForkCount::Call call(calls);
        return work();
    }

    mmkey::python::ForkCount calls;
    std::optional<mmkey::EventLog> log;
    RadixIndex index;
};

/// What a call returned and the hold that it may have taken. One lock each, since Python threads may share it.
template <typename Result>
struct Held {
    Held(std::shared_ptr<Index> of, py::object request, Result got)
        : owner(std::move(of)), prepared(std::move(request)), result(std::move(got)) {}
    Held(const Held&) = delete;

    /// A hold that is dropped without a release may still be relied upon: its blocks stay, and a warning is given.
    ~Held() {
        if (!result.hold) return;
        result.hold.detach();
        const py::error_scope kept;
        if (PyErr_WarnEx(PyExc_ResourceWarning,
                         "a held mmkey match was dropped without release(): its blocks stay held", 1))
            PyErr_WriteUnraisable(nullptr);
    }

    bool is_held() {
        const std::lock_guard lock(mutex);
        return static_cast<bool>(result.hold);
    }
    void release() {
        owner->calls.require_kept("index");
        const std::lock_guard lock(mutex);
        result.hold.release();
    }
    void exit() {
        owner->calls.require_kept("index");
        const std::lock_guard lock(mutex);
        if (result.hold) result.hold.release();
    }

    std::mutex mutex;
    std::shared_ptr<Index> owner;
    py::object prepared;
    Result result;
};
using Match = Held<RadixIndex::Match>;
using Inserted = Held<RadixIndex::Inserted>;

const Prepared& to_prepared(py::handle object) {
    if (py::isinstance<Prepared>(object)) return object.cast<const Prepared&>();
    throw UnsupportedType("prepared", std::string("is a ") + Py_TYPE(object.ptr())->tp_name +
                                          "; allowed is what KeyEngine.prepare returns");
}

py::array_t<std::int64_t> to_array(std::span<const std::int64_t> slots) {
    return py::array_t<std::int64_t>(py::ssize_t(slots.size()), slots.data());
}

/// Hands the vector over to the array.
py::array_t<std::int64_t> to_array(std::vector<std::int64_t>&& slots) {
    auto owned = std::make_unique<std::vector<std::int64_t>>(std::move(slots));
    const py::capsule owner(owned.get(), [](void* vector) { delete static_cast<std::vector<std::int64_t>*>(vector); });
    const std::vector<std::int64_t>& kept = *owned.release();
    return py::array_t<std::int64_t>(py::ssize_t(kept.size()), kept.data(), owner);
}

py::bytes to_bytes(const Digest& digest) { return {reinterpret_cast<const char*>(digest.data()), digest.size()}; }

void require_not_held(const RadixIndex::Hold& hold) {
    if (hold) throw mmkey::HoldError("the match is held already: release it first");
}

py::tuple to_tuple(const BlockEvent& event) {
    py::array_t<std::uint8_t> keys({py::ssize_t(event.keys.size()), py::ssize_t(sizeof(Digest))});
    std::memcpy(keys.mutable_data(), event.keys.data(), event.keys.size() * sizeof(Digest));
    if (event.kind == BlockEvent::Kind::removed) return py::make_tuple(keys, to_array(event.slots));
    const auto tokens = event.tokens();
    return py::make_tuple(keys, to_bytes(event.parent),
                          py::array_t<std::uint32_t>(py::ssize_t(tokens.size()), tokens.data()), to_array(event.slots));
}

py::dict to_dict(const RadixIndex::Stats& stats) {
    using namespace py::literals;
    return py::dict(
        "block_size"_a = stats.block_size, "capacity"_a = stats.capacity ? py::cast(*stats.capacity) : py::none(),
        "blocks"_a = stats.blocks, "held"_a = stats.held, "evictable"_a = stats.evictable, "holds"_a = stats.holds,
        "nodes"_a = stats.nodes, "roots"_a = stats.roots, "bytes"_a = stats.bytes, "collisions"_a = stats.collisions);
}

template <typename Result>
py::class_<Held<Result>> bind_held(py::module_& m, const char* name, const char* doc) {
    auto held = py::class_<Held<Result>>(m, name, doc);
    held.attr("__module__") = "mmkey";
    held.def_property_readonly("held", &Held<Result>::is_held,
                               "Whether it keeps its blocks stored: true until release().")
        .def("release", &Held<Result>::release,
             "Gives the hold back, as a use of its blocks. HoldError if there is none.")
        .def("__enter__", [](py::object self) { return self; })
        .def("__exit__", [](Held<Result>& self, const py::args&) { self.exit(); });
    return held;
}

void bind_results(py::module_& m) {
    bind_held<RadixIndex::Match>(
        m, "Match", "The longest stored prefix of a request. A context manager: leaving it gives a hold back.")
        .def_property_readonly(
            "blocks", [](const Match& self) { return self.result.blocks; }, "Blocks matched.")
        .def_property_readonly(
            "tokens", [](const Match& self) { return self.result.blocks * to_prepared(self.prepared).seed.block_size; },
            "Tokens matched: whole blocks.")
        .def_property_readonly(
            "slots",
            [](const py::object& self) {
                const auto slots = self.cast<const Match&>().result.slots();
                py::array_t<std::int64_t> view(py::ssize_t(slots.size()), slots.data(), self);
                py::detail::array_proxy(view.ptr())->flags &= ~py::detail::npy_api::NPY_ARRAY_WRITEABLE_;
                return view;
            },
            "The blocks' slots: int64 array of shape (blocks,), read-only, without a copy.")
        .def(
            "hold",
            [](Match& self) {
                const std::lock_guard lock(self.mutex);
                require_not_held(self.result.hold);
                self.result.hold = self.owner->at(
                    false, [&] { return self.owner->index.hold(to_prepared(self.prepared), self.result.slots()); });
            },
            "Holds what was matched earlier. HoldError if it is held already, or stale: a block is no longer in its slot.")
        .def("__repr__", [](Match& self) {
            return "<mmkey.Match of " + std::to_string(self.result.blocks) + " blocks" +
                   (self.is_held() ? ", held>" : ">");
        });
    bind_held<RadixIndex::Inserted>(m, "Inserted",
                                    "What an insert did. A context manager: leaving it gives a hold back.")
        .def_property_readonly(
            "new", [](const Inserted& self) { return self.result.stored; }, "Blocks stored now.")
        .def_property_readonly(
            "duplicates", [](const Inserted& self) { return to_array(self.result.duplicates); },
            "Slots given for blocks that another slot holds already, which the caller may free: int64 array.")
        .def_property_readonly(
            "evicted", [](const Inserted& self) { return to_array(self.result.evicted); },
            "Slots freed to stay within capacity, oldest first: int64 array.")
        .def("__repr__", [](Inserted& self) {
            return "<mmkey.Inserted: " + std::to_string(self.result.stored) + " new, " +
                   std::to_string(self.result.duplicates.size()) + " duplicates, " +
                   std::to_string(self.result.evicted.size()) + " evicted" + (self.is_held() ? ", held>" : ">");
        });
}

}  // namespace

void bind_index(py::module_& m) {
    bind_results(m);
    py::class_<Index, std::shared_ptr<Index>>(m, "Index")
        .def(py::init(
                 [](const py::object& block_size, const py::object& capacity, bool events, std::uint64_t hash_mask) {
                     RadixIndex::Options options;
                     options.block_size = to_uint(block_size, "block_size");
                     if (!capacity.is_none()) options.capacity = to_uint(capacity, "capacity");
                     options.hash_mask = hash_mask;
                     return std::make_shared<Index>(options, events);
                 }),
             py::arg("block_size"), py::arg("capacity"), py::arg("events"), py::arg("hash_mask"))
        .def("match",
             [](const std::shared_ptr<Index>& self, const py::object& prepared, const py::object& limit, bool hold,
                bool whole_items) {
                 const Prepared& request = to_prepared(prepared);
                 const std::uint64_t most = limit.is_none() ? RadixIndex::no_limit : to_uint(limit, "limit");
                 auto match = self->at(request.token_ids.size() >= long_match,
                                       [&] { return self->index.match(request, most, hold, whole_items); });
                 return std::make_unique<Match>(self, prepared, std::move(match));
             })
        .def("insert",
             [](const std::shared_ptr<Index>& self, const py::object& prepared, const py::object& slots, bool hold) {
                 const Prepared& request = to_prepared(prepared);
                 const std::vector<std::int64_t> given = to_slots(slots, "slots");
                 auto inserted = self->at(request.token_ids.size() >= long_change,
                                          [&] { return self->index.insert(request, given, hold); });
                 return std::make_unique<Inserted>(self, prepared, std::move(inserted));
             })
        .def("evict",
             [](Index& self, const py::object& blocks) {
                 const std::uint64_t count = to_uint(blocks, "blocks");
                 return to_array(self.at(count >= long_change / 16, [&] { return self.index.evict(count); }));
             })
        .def("remove",
             [](Index& self, const py::object& prepared, const py::object& from_block) {
                 const Prepared& request = to_prepared(prepared);
                 const std::uint64_t first = to_uint(from_block, "from_block");
                 return to_array(self.at(request.token_ids.size() >= long_change,
                                         [&] { return self.index.remove(request, first); }));
             })
        .def("clear", [](Index& self) { return to_array(self.at(true, [&] { return self.index.clear(); })); })
        .def("__len__", [](Index& self) { return self.at(false, [&] { return self.index.size(); }); })
        .def("stats", [](Index& self) { return to_dict(self.at(false, [&] { return self.index.stats(); })); })
        .def("check", [](Index& self) { self.at(true, [&] { self.index.check(); }); })
        .def("events", [](Index& self) {
            py::list events;
            if (!self.log) return events;
            for (const BlockEvent& event : self.at(true, [&] { return self.log->drain(); }))
                events.append(to_tuple(event));
            return events;
        });
}
