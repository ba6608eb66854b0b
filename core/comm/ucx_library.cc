// SPDX-License-Identifier: Apache-2.0
#include "core/comm/ucx_library.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>

namespace cafetiere::ucp {
namespace {

/// Looks up functions one by one and records the name of the first that is missing.
struct Lookup {
  void* handle;
  std::string missing;

  template <class Fn>
  void operator()(const char* name, Fn* out) {
    *out = reinterpret_cast<Fn>(dlsym(handle, name));
    if (!*out && missing.empty()) missing = name;
  }
};

Result<Library> load() {
  // By default UCX installs a SIGSEGV handler when loaded, but the JVM needs its own.
  setenv("UCX_ERROR_SIGNALS", "", 0);
  Lookup look{dlopen("libucp.so.0", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE), {}};
  if (!look.handle) return io_error(fmt::format("UCX is not installed ({})", dlerror()));
  Library l{};
  look("ucp_get_version_string", &l.get_version_string);
  look("ucp_config_read", &l.config_read);
  look("ucp_config_release", &l.config_release);
  look("ucp_init_version", &l.init_version);
  look("ucp_cleanup", &l.cleanup);
  look("ucp_worker_create", &l.worker_create);
  look("ucp_worker_destroy", &l.worker_destroy);
  look("ucp_worker_get_address", &l.worker_get_address);
  look("ucp_worker_release_address", &l.worker_release_address);
  look("ucp_worker_get_efd", &l.worker_get_efd);
  look("ucp_worker_arm", &l.worker_arm);
  look("ucp_worker_progress", &l.worker_progress);
  look("ucp_ep_create", &l.ep_create);
  look("ucp_ep_close_nbx", &l.ep_close_nbx);
  look("ucp_tag_send_sync_nbx", &l.tag_send_sync_nbx);
  look("ucp_tag_recv_nbx", &l.tag_recv_nbx);
  look("ucp_request_check_status", &l.request_check_status);
  look("ucp_request_cancel", &l.request_cancel);
  look("ucp_request_free", &l.request_free);
  look("ucs_status_string", &l.status_string);
  if (look.missing.empty()) return l;
  return io_error(fmt::format("the installed UCX is too old: it lacks {}", look.missing));
}

}  // namespace

Result<const Library*> Library::find() {
  static const Result<Library> library = load();
  if (!library.ok()) return library.status();
  return &*library;
}

}  // namespace cafetiere::ucp
