// SPDX-License-Identifier: Apache-2.0
// What the JNI glue of nets and of solvers shares. Java's handle of either is the address of a NetHandle.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "jvm/native/jni_support.h"

#define CFT_NET(type, name) \
  extern "C" JNIEXPORT type JNICALL Java_cafetiere_core_net_NativeNet_##name

namespace cafetiere::jni {

/// The environment of the calling thread, which is one of Java's.
inline JNIEnv* env_of(JavaVM* vm) {
  void* env = nullptr;
  vm->GetEnv(&env, JNI_VERSION_1_8);
  return static_cast<JNIEnv*>(env);
}

/// A Java object that stays for as long as this does.
class GlobalRef {
 public:
  GlobalRef(JNIEnv* env, jobject object) : object_(object ? env->NewGlobalRef(object) : nullptr) {
    env->GetJavaVM(&vm_);
  }
  ~GlobalRef() {
    if (object_) env_of(vm_)->DeleteGlobalRef(object_);
  }
  GlobalRef(const GlobalRef&) = delete;
  GlobalRef& operator=(const GlobalRef&) = delete;

  jobject get() const { return object_; }
  JNIEnv* env() const { return env_of(vm_); }

 private:
  JavaVM* vm_ = nullptr;
  jobject object_;
};

/// Passes a host's calls on to a Java listener, on the thread that called into the engine. What it
/// throws stays pending, and is what Java gets.
class Listener {
 public:
  Listener(JNIEnv* env, jobject listener);
  /// Valid as long as this object.
  const cft_host* host() const { return &host_; }

 private:
  static void log(void* context, int level, const char* text);
  static int pass(void* context);
  static int gradients(void* context);
  int tell(jmethodID method) const;

  GlobalRef listener_, native_;
  jmethodID message_, pass_, gradients_;
  cft_host host_{};
};

/// A net or a solver, alive until Java has closed it and all nets of it.
struct NetOwner {
  NetOwner(JNIEnv* env, jobject java_listener) : listener(env, java_listener) {}
  ~NetOwner() {
    cft_net_destroy(net);
    cft_solver_destroy(solver);
  }
  NetOwner(const NetOwner&) = delete;
  NetOwner& operator=(const NetOwner&) = delete;

  Listener listener;
  cft_net* net = nullptr;
  cft_solver* solver = nullptr;
  /// The buffers that layers read, by net and layer.
  std::map<std::pair<cft_net*, std::string>, std::vector<std::unique_ptr<GlobalRef>>> fed;
};

struct NetHandle {
  std::shared_ptr<NetOwner> owner;
  cft_net* net;  ///< null in a solver's own handle
};

inline cft_net* net_of(jlong handle) { return handle ? object<NetHandle>(handle)->net : nullptr; }
inline cft_solver* solver_of(jlong handle) {
  return handle ? object<NetHandle>(handle)->owner->solver : nullptr;
}

/// A new net or solver as Java holds it, which `create` makes; 0 with an exception pending.
template <typename Create>
jlong make_handle(JNIEnv* env, jobject listener, Create create) {
  auto owner = std::make_shared<NetOwner>(env, listener);
  if (env->ExceptionCheck() || !check(env, create(*owner))) return 0;
  cft_net* const net = owner->net;
  return address_of(new NetHandle{std::move(owner), net});
}

}  // namespace cafetiere::jni
