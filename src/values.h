// Values of maps (config, processing, sampling, attrs) from Python.
#pragma once

#include "mmkey/cbor.h"

#include <pybind11/pybind11.h>

#include <optional>
#include <string>
#include <vector>

/// null, bool, int, float, text, bytes, list or text-keyed map; NumPy scalars and subclasses count as their base.
/// Throws UnsupportedType or InvalidRequest under `field` and the path to the value (`config.rope.factor`).
mmkey::Value to_value(pybind11::handle object, const std::string& field);

/// The (key, value) pairs of any mapping, in a list of its own; throws UnsupportedType under `field` for what is none.
pybind11::list to_pairs(pybind11::handle mapping, const std::string& field);

/// The entries of a mapping; None is the empty one.
mmkey::Value::Entries to_entries(pybind11::handle mapping, const std::string& field);
mmkey::Value to_map(pybind11::handle mapping, const std::string& field);

/// Text as UTF-8; throws UnsupportedType for what is no str and InvalidRequest for a lone surrogate.
std::string to_text(pybind11::handle object, const std::string& field);
/// bytes, or a text's UTF-8; nothing for None.
std::optional<std::vector<std::uint8_t>> to_salt(pybind11::handle object);
/// A finite positive number as a float; nothing for None.
std::optional<double> to_rate(pybind11::handle object, const std::string& field);
