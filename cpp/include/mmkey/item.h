// What a prompt holds besides text: the content of an item, and the metadata that its embeddings depend on.
#pragma once

#include "mmkey/bytes.h"
#include "mmkey/cbor.h"
#include "mmkey/hash.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mmkey {

/// How the digest of a content was made; part of the key, so equal digests of two kinds are two contents.
enum class ContentKind : std::uint8_t { bytes, array, frames, opaque };

std::string_view name(ContentKind kind) noexcept;

/// What an item is: [kind, algorithm, digest]. The algorithm is the digest's, not the engine's.
struct Content {
    ContentKind kind;
    Algorithm algorithm;
    Digest digest;

    friend bool operator==(const Content&, const Content&) = default;
};

/// The bytes before an array's data in its message: enc(["mmkey/array/1", dtype, shape, attrs, data]) less the data.
/// `attrs` is a map. Throws InvalidRequest (`dtype`, `shape`) for an unknown dtype, or a shape that is not
/// `data_size` bytes of it or holds no element.
std::vector<std::uint8_t> array_head(std::string_view dtype, std::span<const std::uint64_t> shape, const Value& attrs,
                                     std::uint64_t data_size);
/// enc(["mmkey/frames/1", [content, ...]]); throws InvalidRequest (`content`) where there is no frame.
std::vector<std::uint8_t> frames_message(std::span<const Content> frames);
/// enc(["mmkey/opaque/1", namespace, identifier]); throws InvalidRequest where the identifier is empty or not UTF-8.
std::vector<std::uint8_t> opaque_message(std::string_view identifier, std::string_view name_space);

enum class Modality : std::uint8_t { image, video, audio, embeds };

std::string_view name(Modality modality) noexcept;

/// How the frames of a video were taken.
struct Sampling {
    std::vector<std::uint32_t> frame_indices;   ///< never descending; empty: not given
    std::optional<double> source_fps;           ///< finite and positive, frames a second
    std::optional<double> sampled_fps;          ///< finite and positive, frames a second
    std::optional<std::uint64_t> total_frames;  ///< above the last index
    Value::Entries other;                       ///< whatever else the sampler takes
};

/// Everything about an item but its content, as the caller states it.
struct ItemFields {
    Modality modality = Modality::image;
    std::optional<std::vector<std::uint64_t>> original_size;  ///< [height, width] in pixels, as the processor saw it
    std::optional<std::vector<std::uint64_t>> resized_size;   ///< [height, width] in pixels
    std::optional<std::vector<std::uint64_t>> patch_grid;     ///< [t, h, w] patches; [h, w] for an image
    std::optional<std::uint64_t> num_visual_tokens;           ///< prompt positions that the item fills
    std::optional<Sampling> sampling;
    Value::Entries processing;  ///< whatever else determines the embeddings; `sampling_rate` is in Hz
};

/// Validated, encoded metadata; immutable, shared between requests.
class ItemMetadata {
  public:
    /// Throws InvalidRequest naming the field (`patch_grid`, `sampling.frame_indices`, ...) where a value by itself is
    /// wrong. What an item lacks for a full identity is told by `check_full`, since strategies A and B need none of it.
    explicit ItemMetadata(ItemFields fields);

    Modality modality() const noexcept { return fields_.modality; }
    const ItemFields& fields() const noexcept { return fields_; }
    /// original_size ... processing, as they stand in the item's message.
    Bytes encoded() const noexcept { return encoded_; }

    /// Throws InvalidRequest under `where` (`items[1]`) if strategy C cannot key this item with such a content.
    void check_full(ContentKind content, const std::string& where) const;

  private:
    ItemFields fields_;
    bool has_sampling_rate_ = false;
    std::vector<std::uint8_t> encoded_;
};

struct Item {
    Content content;
    std::shared_ptr<const ItemMetadata> metadata;
};

void write(CborWriter& out, const Content& content);

/// H(enc(item)): what strategy C knows an item by.
Digest item_digest(Algorithm algorithm, const Item& item);

}  // namespace mmkey
