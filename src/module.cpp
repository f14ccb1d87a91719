// The extension module: what each noun binds, and how errors cross.
#include "errors.h"
#include "fork_lock.h"
#include "mmkey/error.h"

#include <pybind11/pybind11.h>

namespace py = pybind11;

void bind_hash(py::module_& m);
void bind_content(py::module_& m);
void bind_request(py::module_& m);
void bind_engine(py::module_& m);
void bind_chain(py::module_& m);
void bind_index(py::module_& m);

namespace {

void raise(const char* type, const std::string& field, const std::string& problem) {
    const py::object error = py::module_::import("mmkey.errors").attr(type);
    PyErr_SetObject(error.ptr(), error(field, problem).ptr());
}

void raise(const char* type, const char* text) {
    PyErr_SetString(py::module_::import("mmkey.errors").attr(type).ptr(), text);
}

void translate(std::exception_ptr thrown) {
    try {
        if (thrown) std::rethrow_exception(thrown);
    } catch (const mmkey::InvalidRequest& error) {
        raise("InvalidRequest", error.field(), error.problem());
    } catch (const UnsupportedType& error) {
        raise("UnsupportedType", error.field(), error.problem());
    } catch (const mmkey::CapacityError& error) {
        raise("CapacityError", error.what());
    } catch (const mmkey::HoldError& error) {
        raise("HoldError", error.what());
    }
}

}  // namespace

PYBIND11_MODULE(_core, m, py::mod_gil_not_used()) {
    m.doc() = "The C++ core of mmkey; use it through the package.";
    mmkey::python::count_forks();
    py::register_local_exception_translator(translate);
    bind_hash(m);
    bind_content(m);
    bind_request(m);
    bind_engine(m);
    bind_chain(m);
    bind_index(m);
}
