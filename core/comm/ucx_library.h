// SPDX-License-Identifier: Apache-2.0
// UcxLibrary: the functions of libucp in use, loaded at run time. No part of UCX is linked or
// shipped, and its headers are not needed: the declarations follow ucp.h 1.10 and later.
#pragma once

#include <sys/socket.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "core/base/status.h"

namespace cafetiere::ucp {

using StatusCode = int8_t;  // ucs_status_t is a packed enumeration
inline constexpr StatusCode kOk = 0, kUnreachable = -6, kTruncated = -9;

struct Context;
struct Config;
struct Worker;
struct Peer;  // ucp_ep

struct Params {
  static constexpr uint64_t kFeatures = 1 << 0, kNumEps = 1 << 6;  // field_mask
  static constexpr uint64_t kTag = 1 << 0, kWakeup = 1 << 4;       // features
  uint64_t field_mask = 0, features = 0;
  size_t request_size = 0;
  void (*request_init)(void*) = nullptr;
  void (*request_cleanup)(void*) = nullptr;
  uint64_t tag_sender_mask = 0;
  int mt_workers_shared = 0;
  size_t estimated_num_eps = 0, estimated_num_ppn = 0;
  const char* name = nullptr;
};

struct WorkerParams {
  static constexpr uint64_t kThreadMode = 1 << 0, kFlags = 1 << 5;
  static constexpr int kSerialized = 1;  // several threads, one at a time
  static constexpr uint64_t kIgnoreRequestLeak = 1 << 0;
  uint64_t field_mask = 0;
  int thread_mode = 0;
  unsigned long cpu_mask[16] = {};
  unsigned events = 0;
  void* user_data = nullptr;
  int event_fd = -1;
  uint64_t flags = 0;
  const char* name = nullptr;
  size_t am_alignment = 0;
  uint64_t client_id = 0;
};

struct SocketAddress {
  const sockaddr* address = nullptr;
  socklen_t length = 0;
};

struct PeerParams {
  static constexpr uint64_t kRemoteAddress = 1 << 0, kErrorMode = 1 << 1, kErrorHandler = 1 << 2;
  static constexpr int kReportPeerFailure = 1;
  uint64_t field_mask = 0;
  const void* address = nullptr;
  int error_mode = 0;
  void (*on_error)(void* context, Peer* peer, StatusCode why) = nullptr;
  void* error_context = nullptr;
  void* user_data = nullptr;
  unsigned flags = 0;
  SocketAddress remote;
  void* connection_request = nullptr;
  const char* name = nullptr;
  SocketAddress local;
};

struct ReceiveInfo {
  uint64_t tag;
  size_t bytes;
};

struct RequestParams {
  static constexpr uint32_t kCallback = 1 << 1, kUserData = 1 << 2, kFlags = 1 << 4;
  static constexpr uint32_t kAlwaysRequest = 1 << 16;  // UCP_OP_ATTR_FLAG_NO_IMM_CMPL
  static constexpr uint32_t kCloseAtOnce = 1;          // flags of ep_close_nbx
  using OnSent = void (*)(void* request, StatusCode status, void* user_data);
  using OnReceived = void (*)(void* request, StatusCode status, const ReceiveInfo* info,
                              void* user_data);
  uint32_t mask = 0, flags = 0;
  void* request = nullptr;
  union {
    OnSent on_sent = nullptr;
    OnReceived on_received;
  };
  uint64_t datatype = 0;  // not set: bytes
  void* user_data = nullptr;
  void* reply_buffer = nullptr;
  int memory_type = 0;
  void* receive_info = nullptr;
  void* memory = nullptr;
};

/// A function that starts an operation returns null, a request, or a status encoded as a pointer.
inline bool is_error(const void* result) {
  return reinterpret_cast<uintptr_t>(result) >= uintptr_t(-100);
}
inline StatusCode status_of(const void* result) {
  return static_cast<StatusCode>(reinterpret_cast<intptr_t>(result));
}

struct Library {
  /// The system's library, loaded once and never unloaded; kIo if there is none or it lacks a
  /// function.
  static Result<const Library*> find();

  const char* (*get_version_string)();
  StatusCode (*config_read)(const char* prefix, const char* file, Config** out);
  void (*config_release)(Config*);
  StatusCode (*init_version)(unsigned major, unsigned minor, const Params*, const Config*,
                             Context** out);
  void (*cleanup)(Context*);
  StatusCode (*worker_create)(Context*, const WorkerParams*, Worker** out);
  void (*worker_destroy)(Worker*);
  StatusCode (*worker_get_address)(Worker*, void** address, size_t* bytes);
  void (*worker_release_address)(Worker*, void* address);
  StatusCode (*worker_get_efd)(Worker*, int* fd);
  StatusCode (*worker_arm)(Worker*);
  unsigned (*worker_progress)(Worker*);
  StatusCode (*ep_create)(Worker*, const PeerParams*, Peer** out);
  void* (*ep_close_nbx)(Peer*, const RequestParams*);
  void* (*tag_send_sync_nbx)(Peer*, const void*, size_t bytes, uint64_t tag, const RequestParams*);
  void* (*tag_recv_nbx)(Worker*, void*, size_t bytes, uint64_t tag, uint64_t mask,
                        const RequestParams*);
  StatusCode (*request_check_status)(void* request);
  void (*request_cancel)(Worker*, void* request);
  void (*request_free)(void* request);
  const char* (*status_string)(StatusCode);
};

}  // namespace cafetiere::ucp
