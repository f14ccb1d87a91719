// mmkey.sha256 and mmkey.blake3: plain CPython types, since a pybind11 object costs more than the digest of a kilobyte.
#include "hasher.h"

#include "buffer.h"
#include "call.h"
#include "fork_lock.h"

#include "mmkey/hash.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <new>
#include <optional>
#include <thread>

namespace py = pybind11;

namespace mmkey::python {
namespace {

template <typename State>
struct Object {
    PyObject_HEAD ForkLock mutex;  // guards `state`: an update may run without the GIL
    unsigned threads;
    State state;
};

template <typename State>
Object<State>* as(PyObject* self) noexcept {
    return reinterpret_cast<Object<State>*>(self);
}

/// Holds an object's mutex; never waits for it with the GIL held, which its holder may be waiting for. False, with
/// InvalidRequest set, where it is lost.
class Lock {
  public:
    explicit Lock(ForkLock& mutex) noexcept : mutex_(mutex) {
        auto outcome = mutex_.try_lock();
        if (outcome == ForkLock::Outcome::busy) {
            PyThreadState* state = PyEval_SaveThread();
            outcome = mutex_.lock() ? ForkLock::Outcome::taken : ForkLock::Outcome::lost;
            PyEval_RestoreThread(state);
        }
        held_ = outcome == ForkLock::Outcome::taken;
        if (!held_) raise("InvalidRequest", "hasher", ForkLock::problem);
    }
    Lock(const Lock&) = delete;
    Lock& operator=(const Lock&) = delete;
    ~Lock() {
        if (held_) mutex_.unlock();
    }
    explicit operator bool() const noexcept { return held_; }

  private:
    ForkLock& mutex_;
    bool held_;
};

void feed(Object<Sha256>& object, Bytes data) noexcept { object.state.update(data); }
void feed(Object<Blake3>& object, Bytes data) noexcept { object.state.update(data, object.threads); }

template <typename State>
PyObject* make(PyTypeObject* type, const State& state, unsigned threads) noexcept {
    auto* object = PyObject_New(Object<State>, type);
    if (!object) return nullptr;
    new (&object->mutex) ForkLock;
    new (&object->state) State(state);
    object->threads = threads;
    return reinterpret_cast<PyObject*>(object);
}

template <typename State>
void dealloc(PyObject* self) noexcept {
    PyTypeObject* type = Py_TYPE(self);
    as<State>(self)->mutex.~ForkLock();
    PyObject_Free(self);
    Py_DECREF(type);
}

/// A new object fed with what its constructor was given.
template <typename State>
PyObject* make_fed(PyObject* type, const State& state, unsigned threads, PyObject* data) noexcept {
    BufferView view;
    if (data && !view.take(data, {"data"})) return nullptr;
    PyObject* self = make(reinterpret_cast<PyTypeObject*>(type), state, threads);
    if (self && !view.bytes().empty()) {
        const ReleaseGil release(view.bytes().size());
        feed(*as<State>(self), view.bytes());
    }
    return self;
}

PyObject* new_sha256(PyObject* type, PyObject* const* args, std::size_t count, PyObject* keywords) noexcept {
    static constexpr const char* names[] = {"data", "usedforsecurity"};
    static constexpr Signature signature{"sha256", 1, 0, names};
    PyObject* given[2];
    if (!signature.parse(args, PyVectorcall_NARGS(count), keywords, given)) return nullptr;
    return make_fed(type, Sha256(), 1, given[0]);
}

PyObject* new_blake3(PyObject* type, PyObject* const* args, std::size_t count, PyObject* keywords) noexcept {
    static constexpr const char* names[] = {"data", "key", "derive_key_context", "max_threads", "usedforsecurity"};
    static constexpr Signature signature{"blake3", 1, 0, names};
    PyObject* given[5];
    if (!signature.parse(args, PyVectorcall_NARGS(count), keywords, given)) return nullptr;
    PyObject* key = given[1] == Py_None ? nullptr : given[1];
    PyObject* context = given[2] == Py_None ? nullptr : given[2];
    unsigned threads = 1;
    if (given[3]) {
        if (PyLong_Check(given[3]) && PyLong_AsLong(given[3]) == -1 && !PyErr_Occurred()) {  // blake3.AUTO
            threads = std::max(1u, std::thread::hardware_concurrency());
        } else {
            PyErr_Clear();
            const auto number = to_threads(given[3], "max_threads");
            if (!number) return nullptr;
            threads = *number;
        }
    }
    if (key && context) {
        raise("InvalidRequest", "derive_key_context", "cannot go together with a key: they are two modes");
        return nullptr;
    }
    if (key) {
        BufferView view;
        if (!view.take(key, {"key"})) return nullptr;
        if (view.bytes().size() != Blake3::key_size) {
            raise("InvalidRequest", "key", "has " + std::to_string(view.bytes().size()) + " bytes; it must have 32");
            return nullptr;
        }
        return make_fed(type, Blake3::keyed(view.bytes().first<Blake3::key_size>()), threads, given[0]);
    }
    if (context) {
        if (!PyUnicode_Check(context)) {
            raise("UnsupportedType", "derive_key_context",
                  std::string("must be text, not ") + Py_TYPE(context)->tp_name);
            return nullptr;
        }
        Py_ssize_t size = 0;
        const char* utf8 = PyUnicode_AsUTF8AndSize(context, &size);
        if (!utf8) {
            PyErr_Clear();
            raise("InvalidRequest", "derive_key_context", "holds a lone surrogate, which has no UTF-8 form");
            return nullptr;
        }
        return make_fed(type, Blake3::derive_key(as_bytes({utf8, static_cast<std::size_t>(size)})), threads, given[0]);
    }
    return make_fed(type, Blake3(), threads, given[0]);
}

template <typename State>
bool update(PyObject* self, PyObject* data) noexcept {
    BufferView view;
    if (!view.take(data, {"data"})) return false;
    const Lock lock(as<State>(self)->mutex);
    if (!lock) return false;
    const ReleaseGil release(view.bytes().size());
    feed(*as<State>(self), view.bytes());
    return true;
}

PyObject* update_sha256(PyObject* self, PyObject* data) noexcept {
    return update<Sha256>(self, data) ? Py_NewRef(Py_None) : nullptr;
}

PyObject* update_blake3(PyObject* self, PyObject* data) noexcept {
    return update<Blake3>(self, data) ? Py_NewRef(self) : nullptr;
}

template <typename State>
PyObject* copy(PyObject* self, PyObject*) noexcept {
    const Lock lock(as<State>(self)->mutex);
    if (!lock) return nullptr;
    return make(Py_TYPE(self), as<State>(self)->state, as<State>(self)->threads);
}

PyObject* reset_sha256(PyObject* self, PyObject*) noexcept {
    const Lock lock(as<Sha256>(self)->mutex);
    if (!lock) return nullptr;
    as<Sha256>(self)->state.reset();
    return Py_NewRef(Py_None);
}

PyObject* reset_blake3(PyObject* self, PyObject*) noexcept {
    const Lock lock(as<Blake3>(self)->mutex);
    if (!lock) return nullptr;
    as<Blake3>(self)->state.reset();
    return Py_NewRef(self);
}

PyObject* to_bytes(Bytes bytes) noexcept {
    return PyBytes_FromStringAndSize(reinterpret_cast<const char*>(bytes.data()),
                                     static_cast<Py_ssize_t>(bytes.size()));
}

PyObject* to_text(Bytes bytes) noexcept {
    PyObject* text = PyUnicode_New(static_cast<Py_ssize_t>(2 * bytes.size()), 'f');
    if (!text) return nullptr;
    Py_UCS1* out = PyUnicode_1BYTE_DATA(text);
    for (const std::uint8_t byte : bytes) {
        *out++ = static_cast<Py_UCS1>("0123456789abcdef"[byte >> 4]);
        *out++ = static_cast<Py_UCS1>("0123456789abcdef"[byte & 15]);
    }
    return text;
}

std::optional<Digest> digest_of(PyObject* self) noexcept {
    const Lock lock(as<Sha256>(self)->mutex);
    return lock ? std::optional(as<Sha256>(self)->state.digest()) : std::nullopt;
}

PyObject* digest_sha256(PyObject* self, PyObject*) noexcept {
    const auto digest = digest_of(self);
    return digest ? to_bytes(*digest) : nullptr;
}

PyObject* hexdigest_sha256(PyObject* self, PyObject*) noexcept {
    const auto digest = digest_of(self);
    return digest ? to_text(*digest) : nullptr;
}

template <bool hex>
PyObject* digest_blake3(PyObject* self, PyObject* const* args, Py_ssize_t count, PyObject* keywords) noexcept {
    static constexpr const char* names[] = {"length", "seek"};
    static constexpr Signature signature{hex ? "hexdigest" : "digest", 2, 0, names};
    PyObject* given[2];
    if (!signature.parse(args, count, keywords, given)) return nullptr;
    const auto length = to_number(given[0], "length", sizeof(Digest), 0, PY_SSIZE_T_MAX / 2);
    if (!length) return nullptr;
    const auto seek = to_number(given[1], "seek", 0, 0, ~0ULL - *length);
    if (!seek) return nullptr;
    const auto size = static_cast<std::size_t>(*length);
    PyObject* bytes = PyBytes_FromStringAndSize(nullptr, static_cast<Py_ssize_t>(size));
    if (!bytes) return nullptr;
    const std::span out(reinterpret_cast<std::uint8_t*>(PyBytes_AS_STRING(bytes)), size);
    {
        const Lock lock(as<Blake3>(self)->mutex);
        if (!lock) {
            Py_DECREF(bytes);
            return nullptr;
        }
        const ReleaseGil release(size);
        as<Blake3>(self)->state.digest(out, *seek);
    }
    if constexpr (!hex) return bytes;
    PyObject* text = to_text(out);
    Py_DECREF(bytes);
    return text;
}

template <typename Function>
PyCFunction method(Function* function) noexcept {
    return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function));
}

const char update_doc[] =
    "update($self, data, /)\n--\n\nAdds bytes to the message. From 16 KiB on other Python threads run meanwhile.";
const char copy_doc[] = "copy($self)\n--\n\nAn independent object with the same message so far.";
const char reset_doc[] = "reset($self)\n--\n\nForgets the message so far; the mode stays.";
const char digest_doc[] = "digest($self)\n--\n\nThe 32 bytes of the digest of the message so far; more may follow.";
const char hexdigest_doc[] = "hexdigest($self)\n--\n\nThe digest as lowercase hexadecimal.";
const char output_doc[] =
    "digest($self, length=32, seek=0)\n--\n\nBytes [seek, seek + length) of the output for the message so far; more may follow.";
const char hexoutput_doc[] = "hexdigest($self, length=32, seek=0)\n--\n\nThe output as lowercase hexadecimal.";

PyMethodDef sha256_methods[] = {
    {"update", update_sha256, METH_O, update_doc},
    {"digest", digest_sha256, METH_NOARGS, digest_doc},
    {"hexdigest", hexdigest_sha256, METH_NOARGS, hexdigest_doc},
    {"copy", copy<Sha256>, METH_NOARGS, copy_doc},
    {"reset", reset_sha256, METH_NOARGS, reset_doc},
    {nullptr, nullptr, 0, nullptr},
};

PyMethodDef blake3_methods[] = {
    {"update", update_blake3, METH_O, update_doc},
    {"digest", method(digest_blake3<false>), METH_FASTCALL | METH_KEYWORDS, output_doc},
    {"hexdigest", method(digest_blake3<true>), METH_FASTCALL | METH_KEYWORDS, hexoutput_doc},
    {"copy", copy<Blake3>, METH_NOARGS, copy_doc},
    {"reset", reset_blake3, METH_NOARGS, reset_doc},
    {nullptr, nullptr, 0, nullptr},
};

const char sha256_doc[] =
    "sha256(data=b'', *, usedforsecurity=True)\n--\n\n"
    "SHA-256 of a message that comes in pieces, with the interface of hashlib's objects. Safe under threads.";
const char blake3_doc[] =
    "blake3(data=b'', *, key=None, derive_key_context=None, max_threads=1, usedforsecurity=True)\n--\n\n"
    "BLAKE3 of a message that comes in pieces, with the interface of PyPI's blake3. Safe under threads.\n\n"
    "key: 32 bytes, for a keyed hash. derive_key_context: text, for key derivation; data is the key material.\n"
    "max_threads: the most that may work on one update; blake3.AUTO is one for each CPU.";

/// Makes a type of `full_name` (kept: a literal) that is built by calling it (`construct`) and in no other way, and adds it to the module.
template <typename State>
void bind(py::module_& module, const char* full_name, const char* doc, PyMethodDef* methods, vectorcallfunc construct,
          std::initializer_list<std::pair<const char*, long>> numbers) {
    PyType_Slot slots[] = {
        {Py_tp_doc, const_cast<char*>(doc)},
        {Py_tp_dealloc, reinterpret_cast<void*>(&dealloc<State>)},
        {Py_tp_methods, methods},
        {0, nullptr},
    };
    const char* name = std::strrchr(full_name, '.') + 1;
    PyType_Spec spec{full_name, sizeof(Object<State>), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                     slots};
    const auto type = py::reinterpret_steal<py::object>(PyType_FromSpec(&spec));
    if (!type) throw py::error_already_set();
    type.attr("name") = name;
    for (const auto& [key, value] : numbers) type.attr(key) = value;
    auto* raw = reinterpret_cast<PyTypeObject*>(type.ptr());
    raw->tp_vectorcall = construct;
    raw->tp_flags |= Py_TPFLAGS_IMMUTABLETYPE;
    module.attr(name) = type;
}

}  // namespace

void bind_hashers(py::module_& module) {
    bind<Sha256>(module, "mmkey.sha256", sha256_doc, sha256_methods, new_sha256,
                 {{"digest_size", 32}, {"block_size", 64}});
    bind<Blake3>(module, "mmkey.blake3", blake3_doc, blake3_methods, new_blake3,
                 {{"digest_size", 32}, {"block_size", 64}, {"key_size", 32}, {"AUTO", -1}});
}

}  // namespace mmkey::python
