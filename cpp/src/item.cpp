#include "mmkey/item.h"

#include "mmkey/error.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

namespace mmkey {

namespace {

using Numbers = std::optional<std::vector<std::uint64_t>>;

constexpr std::pair<std::string_view, std::uint64_t> dtypes[] = {
    {"u1", 1}, {"u2", 2}, {"u4", 4},  {"u8", 8}, {"i1", 1}, {"i2", 2}, {"i4", 4},
    {"i8", 8}, {"f2", 2}, {"bf2", 2}, {"f4", 4}, {"f8", 8}, {"b1", 1},
};

std::string listing(std::span<const std::uint64_t> values) {
    std::string text = "[";
    for (const auto value : values) text += (text.size() > 1 ? ", " : "") + std::to_string(value);
    return text + "]";
}

double positive_rate(double rate, const char* field) {
    if (!std::isfinite(rate) || rate <= 0)
        throw InvalidRequest(field, std::to_string(rate) + " is not a finite positive number");
    return rate;
}

Value rate_or_null(const std::optional<double>& rate, const char* field) {
    return rate ? Value::real(positive_rate(*rate, field)) : Value::null();
}

void require_positive(const Numbers& numbers, std::size_t fewest, std::size_t most, const char* field,
                      const char* allowed) {
    if (!numbers) return;
    const bool right_count = numbers->size() >= fewest && numbers->size() <= most;
    if (!right_count || std::ranges::find(*numbers, 0u) != numbers->end())
        throw InvalidRequest(field, listing(*numbers) + " is not " + allowed);
}

void write(CborWriter& out, const Numbers& numbers) {
    if (!numbers) return out.null();
    out.array(numbers->size());
    for (const auto number : *numbers) out.uint(number);
}

Value encode(const Sampling& sampling) {
    const auto& indices = sampling.frame_indices;
    if (const auto down = std::ranges::adjacent_find(indices, std::greater{}); down != indices.end())
        throw InvalidRequest("sampling.frame_indices", std::to_string(down[1]) + " follows " + std::to_string(down[0]) +
                                                           "; indices never descend");
    if (sampling.total_frames && !indices.empty() && indices.back() >= *sampling.total_frames)
        throw InvalidRequest(
            "sampling.total_frames",
            std::to_string(*sampling.total_frames) + " is reached by frame index " + std::to_string(indices.back()));
    Value::Entries entries = sampling.other;
    entries.emplace_back("frame_indices", indices.empty() ? Value::null() : Value::tokens(indices));
    entries.emplace_back("source_fps", rate_or_null(sampling.source_fps, "sampling.source_fps"));
    entries.emplace_back("sampled_fps", rate_or_null(sampling.sampled_fps, "sampling.sampled_fps"));
    entries.emplace_back("total_frames", sampling.total_frames ? Value::uint(*sampling.total_frames) : Value::null());
    return Value::map(std::move(entries));
}

}  // namespace

std::string_view name(ContentKind kind) noexcept {
    constexpr std::string_view names[] = {"bytes", "array", "frames", "opaque"};
    return names[std::size_t(kind)];
}

std::string_view name(Modality modality) noexcept {
    constexpr std::string_view names[] = {"image", "video", "audio", "embeds"};
    return names[std::size_t(modality)];
}

void write(CborWriter& out, const Content& content) {
    out.array(3);
    out.text(name(content.kind));
    out.text(name(content.algorithm));
    out.bytes(content.digest);
}

std::vector<std::uint8_t> array_head(std::string_view dtype, std::span<const std::uint64_t> shape, const Value& attrs,
                                     std::uint64_t data_size) {
    const auto* known = std::ranges::find(dtypes, dtype, [](const auto& entry) { return entry.first; });
    if (known == std::end(dtypes))
        throw InvalidRequest("dtype", "'" + std::string(dtype) + "' is no dtype of an array content");
    std::uint64_t expected = known->second;
    bool overflow = false;
    for (const auto extent : shape) overflow |= __builtin_mul_overflow(expected, extent, &expected);
    if (overflow || expected != data_size || data_size == 0)
        throw InvalidRequest("shape", listing(shape) + " of " + std::string(dtype) + " is not the shape of " +
                                          std::to_string(data_size) + " bytes; an array holds at least one element");
    std::vector<std::uint8_t> out;
    CborWriter writer(out);
    writer.array(5);
    writer.text("mmkey/array/1");
    writer.text(dtype);
    writer.array(shape.size());
    for (const auto extent : shape) writer.uint(extent);
    writer.encoded(attrs.encoded());
    writer.bytes_head(data_size);
    return out;
}

std::vector<std::uint8_t> frames_message(std::span<const Content> frames) {
    if (frames.empty()) throw InvalidRequest("content", "holds no frames");
    std::vector<std::uint8_t> out;
    CborWriter writer(out);
    writer.array(2);
    writer.text("mmkey/frames/1");
    writer.array(frames.size());
    for (const Content& frame : frames) write(writer, frame);
    return out;
}

std::vector<std::uint8_t> opaque_message(std::string_view identifier, std::string_view name_space) {
    if (identifier.empty()) throw InvalidRequest("identifier", "is empty; an identifier is a non-empty text");
    if (!is_utf8(identifier)) throw InvalidRequest("identifier", "is not well-formed UTF-8");
    if (!is_utf8(name_space)) throw InvalidRequest("namespace", "is not well-formed UTF-8");
    std::vector<std::uint8_t> out;
    CborWriter writer(out);
    writer.array(3);
    writer.text("mmkey/opaque/1");
    writer.text(name_space);
    writer.text(identifier);
    return out;
}

ItemMetadata::ItemMetadata(ItemFields fields) : fields_(std::move(fields)) {
    constexpr auto size = "[height, width], two positive integers";
    require_positive(fields_.original_size, 2, 2, "original_size", size);
    require_positive(fields_.resized_size, 2, 2, "resized_size", size);
    require_positive(fields_.patch_grid, 2, 3, "patch_grid", "[t, h, w], or [h, w] for an image, of positive integers");
    if (fields_.num_visual_tokens == 0u) throw InvalidRequest("num_visual_tokens", "0 is not a positive integer");
    if (fields_.modality == Modality::image && fields_.patch_grid && fields_.patch_grid->size() == 2)
        fields_.patch_grid->insert(fields_.patch_grid->begin(), 1);

    for (auto& [key, value] : fields_.processing) {
        if (key != "sampling_rate" || value.is_null()) continue;
        const auto rate = value.number();
        if (!rate) throw InvalidRequest("processing.sampling_rate", "is not a finite positive number");
        value = Value::real(positive_rate(*rate, "processing.sampling_rate"));
        has_sampling_rate_ = true;
    }

    CborWriter writer(encoded_);
    write(writer, fields_.original_size);
    write(writer, fields_.resized_size);
    write(writer, fields_.patch_grid);
    writer.encoded((fields_.num_visual_tokens ? Value::uint(*fields_.num_visual_tokens) : Value::null()).encoded());
    writer.encoded((fields_.sampling ? encode(*fields_.sampling) : Value::null()).encoded());
    writer.encoded(Value::map(fields_.processing).encoded());
}

void ItemMetadata::check_full(ContentKind content, const std::string& where) const {
    const auto fail = [&](const char* field, const char* problem) {
        throw InvalidRequest(where + "." + field,
                             std::string(problem) + " (the modality is " + std::string(name(modality())) + ")");
    };
    if (!fields_.num_visual_tokens) fail("num_visual_tokens", "is missing; strategy C needs it for every item");
    const std::pair<const char*, const Numbers*> shapes[] = {
        {"original_size", &fields_.original_size},
        {"resized_size", &fields_.resized_size},
        {"patch_grid", &fields_.patch_grid},
    };
    const bool visual = modality() == Modality::image || modality() == Modality::video;
    for (const auto& [field, shape] : shapes) {
        if (visual && !*shape) fail(field, "is missing; strategy C needs it for an image or a video");
        if (!visual && *shape) fail(field, "is given; only an image or a video has one");
    }
    if (modality() == Modality::video) {
        if (fields_.patch_grid->size() != 3) fail("patch_grid", "is not [t, h, w], three positive integers");
        if (!fields_.sampling || fields_.sampling->frame_indices.empty())
            fail("sampling.frame_indices", "is missing; strategy C needs it for a video");
    } else if (fields_.sampling) {
        fail("sampling", "is given; only a video is sampled");
    }
    if (modality() == Modality::embeds && content != ContentKind::array)
        fail("content", "is no array; prompt embeddings are one");
    if (modality() == Modality::audio && content == ContentKind::array && !has_sampling_rate_)
        fail("processing.sampling_rate", "is missing; an array of samples means nothing without it");
}

Digest item_digest(Algorithm algorithm, const Item& item) {
    std::vector<std::uint8_t> message;
    message.reserve(96 + item.metadata->encoded().size());
    CborWriter writer(message);
    writer.array(9);
    writer.text("mmkey/item/1");
    writer.text(name(item.metadata->modality()));
    write(writer, item.content);
    writer.encoded(item.metadata->encoded());
    return digest(algorithm, message);
}

}  // namespace mmkey
