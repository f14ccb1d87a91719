#include "mmkey/request.h"

#include "mmkey/error.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

namespace mmkey {

namespace {

constexpr auto unplaced = std::numeric_limits<std::uint32_t>::max();

std::string indexed(const char* field, std::size_t index) {
    return std::string(field) + "[" + std::to_string(index) + "]";
}

std::string text(const Range& range) {
    return "[" + std::to_string(range.offset) + ", " + std::to_string(range.length) + "]";
}

void check_range(const Range& range, std::size_t index, std::uint64_t free_from, std::uint64_t begin,
                 std::uint64_t end) {
    const auto fail = [&](const std::string& problem) {
        throw InvalidRequest(indexed("layout", index), text(range) + " " + problem);
    };
    if (range.length == 0) fail("is empty; a range holds at least one position");
    if (range.offset < begin) fail("begins before position " + std::to_string(begin) + ", where these tokens start");
    if (range.offset < free_from)
        fail("overlaps the range before it, or is out of order; the next may begin at " + std::to_string(free_from));
    if (range.offset <= end && range.length <= end - range.offset) return;
    fail(end == std::numeric_limits<std::uint64_t>::max()
             ? "ends beyond position 2**64 - 1, the last that there is"
             : "leaves the prompt, which has " + std::to_string(end) + " tokens");
}

Digest place(Algorithm algorithm, const Content* content, const Digest* item, std::span<const Span> ranges) {
    std::vector<std::uint8_t> message;
    message.reserve(80 + 12 * ranges.size());
    CborWriter writer(message);
    writer.array(3);
    writer.text("mmkey/placed/1");
    if (content != nullptr) {
        write(writer, *content);
    } else {
        writer.bytes(*item);
    }
    writer.array(ranges.size());
    for (const Span& range : ranges) {
        writer.array(2);
        writer.uint(range.offset - ranges.front().offset);
        writer.uint(range.length);
    }
    return digest(algorithm, message);
}

/// The spans of each item, ascending, item after item.
std::vector<Span> by_item(const NormalForm& normal) {
    std::vector<Span> spans = normal.spans;
    std::ranges::stable_sort(spans, {}, &Span::item);
    return spans;
}

void check_token_counts(const Request& request, const NormalForm& normal) {
    std::vector<std::uint64_t> positions(normal.appearance.size());
    for (const Span& span : normal.spans) positions[span.item] += span.length;
    for (std::size_t n = 0; n < positions.size(); ++n) {
        const std::size_t listed = normal.appearance[n];
        const auto declared = *request.items[listed].metadata->fields().num_visual_tokens;
        if (declared != positions[n])
            throw InvalidRequest(indexed("items", listed) + ".num_visual_tokens",
                                 std::to_string(declared) + " is not the " + std::to_string(positions[n]) +
                                     " positions that its ranges hold");
    }
}

}  // namespace

TokenIds::TokenIds(std::span<const std::uint32_t> ids) : size_(ids.size()) {
    auto copy = std::make_shared_for_overwrite<std::uint32_t[]>(ids.size());
    std::ranges::copy(ids, copy.get());
    data_ = std::move(copy);
}

char letter(Strategy strategy) noexcept { return "ABC"[std::size_t(strategy)]; }

NormalForm normal_form(std::span<const Range> layout, const std::optional<std::vector<std::uint64_t>>& order,
                       std::size_t item_count, std::uint64_t begin, std::uint64_t end) {
    if (order && order->size() != layout.size())
        throw InvalidRequest("order", std::to_string(order->size()) + " entries for " + std::to_string(layout.size()) +
                                          " ranges; it names the item of each range");
    NormalForm normal;
    normal.spans.reserve(layout.size());
    std::vector<std::uint32_t> number(item_count, unplaced);  // of each listed item, in normal order
    std::vector<std::uint64_t> filled(item_count);            // by normal number
    std::uint64_t free_from = begin;
    for (std::size_t i = 0; i < layout.size(); ++i) {
        const Range& range = layout[i];
        check_range(range, i, free_from, begin, end);
        const std::uint64_t listed = order ? (*order)[i] : i;
        if (listed >= item_count && !order)
            throw InvalidRequest("layout", "has " + std::to_string(layout.size()) + " ranges for " +
                                               std::to_string(item_count) +
                                               " items; with several for one item, give an order");
        if (listed >= item_count)
            throw InvalidRequest(indexed("order", i),
                                 std::to_string(listed) + " names no item; there are " + std::to_string(item_count));
        if (number[listed] == unplaced) {
            number[listed] = std::uint32_t(normal.appearance.size());
            normal.appearance.push_back(std::uint32_t(listed));
        }
        const std::uint32_t item = number[listed];
        auto& spans = normal.spans;
        if (!spans.empty() && spans.back().item == item && spans.back().end() == range.offset) {
            spans.back().length += range.length;
        } else {
            spans.push_back({range.offset, range.length, filled[item], item});
        }
        filled[item] += range.length;
        free_from = range.end();
    }
    if (const auto lost = std::ranges::find(number, unplaced); lost != number.end())
        throw InvalidRequest(indexed("items", std::size_t(lost - number.begin())), "stands in no range of the layout");
    return normal;
}

NormalForm check(Strategy strategy, const Request& request, std::uint64_t begin, std::uint64_t end) {
    for (std::size_t i = 0; i < request.items.size(); ++i) {
        if (request.items[i].metadata == nullptr) throw InvalidRequest(indexed("items", i), "has no metadata");
        if (strategy == Strategy::C)
            request.items[i].metadata->check_full(request.items[i].content.kind, indexed("items", i));
    }
    if (!request.layout) {
        if (strategy == Strategy::C)
            throw InvalidRequest("layout", "is None; strategy C needs to know where items stand");
        if (request.order) throw InvalidRequest("order", "is given without a layout; it names the item of each range");
        return {};
    }
    NormalForm normal = normal_form(*request.layout, request.order, request.items.size(), begin, end);
    if (strategy == Strategy::C) check_token_counts(request, normal);
    return normal;
}

Identities identify(const ChainSeed& seed, std::span<const Item> items, const NormalForm& normal) {
    Identities known;
    if (seed.strategy == Strategy::A) return known;
    std::vector<std::uint32_t> listed = normal.appearance;
    if (normal.spans.empty()) {
        listed.resize(items.size());
        std::iota(listed.begin(), listed.end(), 0u);
    }
    const bool by_content = seed.strategy == Strategy::B;
    for (const auto i : listed) {
        if (by_content) {
            known.contents.push_back(items[i].content);
        } else {
            known.item_digests.push_back(item_digest(seed.algorithm, items[i]));
        }
    }
    const std::vector<Span> spans = by_item(normal);
    for (auto first = spans.begin(); first != spans.end();) {
        const auto last = std::find_if(first, spans.end(), [&](const Span& s) { return s.item != first->item; });
        known.places.push_back(place(seed.algorithm, by_content ? &known.contents[first->item] : nullptr,
                                     by_content ? nullptr : &known.item_digests[first->item], {first, last}));
        first = last;
    }
    return known;
}

}  // namespace mmkey
