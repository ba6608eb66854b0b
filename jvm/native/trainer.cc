// SPDX-License-Identifier: Apache-2.0
// JNI glue for cafetiere.core.Trainer. Java's handle is the address of a JavaTrainer.
#include <memory>

#include "jvm/native/jni_support.h"

using namespace cafetiere::jni;

namespace {

/// Calls a Java listener from the thread that runs the trainer. What the listener throws is kept
/// until the run has returned, because no exception may be pending in between.
class Listener {
 public:
  Listener(JNIEnv* env, jobject listener) : listener_(env->NewGlobalRef(listener)) {
    env->GetJavaVM(&vm_);
    native_ = static_cast<jclass>(env->NewGlobalRef(env->FindClass("cafetiere/core/Native")));
    event_ = env->GetStaticMethodID(native_, "event", "(Lcafetiere/core/Trainer$Listener;[B)V");
    checkpoint_ = env->GetStaticMethodID(
        native_, "checkpoint",
        "(Lcafetiere/core/Trainer$Listener;[BLjava/nio/ByteBuffer;Ljava/nio/ByteBuffer;)V");
  }

  ~Listener() {
    JNIEnv* env = this->env();
    env->DeleteGlobalRef(listener_);
    env->DeleteGlobalRef(native_);
    env->DeleteGlobalRef(thrown_);
  }

  cft_callbacks callbacks() {
    return {sizeof(cft_callbacks), this, &Listener::event, &Listener::checkpoint};
  }

  /// Throws what a callback threw, if one did.
  bool rethrow(JNIEnv* env) {
    if (!thrown_) return false;
    env->Throw(thrown_);
    env->DeleteGlobalRef(thrown_);
    thrown_ = nullptr;
    return true;
  }

 private:
  static int event(void* context, const char* json) {
    auto* self = static_cast<Listener*>(context);
    return self->call([&](JNIEnv* env) {
      jbyteArray text = to_java(env, json);
      if (text) env->CallStaticVoidMethod(self->native_, self->event_, self->listener_, text);
    });
  }

  static int checkpoint(void* context, const char* json, const void* model, uint64_t model_bytes,
                        const void* state, uint64_t state_bytes) {
    auto* self = static_cast<Listener*>(context);
    return self->call([&](JNIEnv* env) {
      jbyteArray text = to_java(env, json);
      // Null where they are files.
      jobject weights = text && model ? buffer(env, model, model_bytes) : nullptr;
      jobject history = weights ? buffer(env, state, state_bytes) : nullptr;
      if (text && !env->ExceptionCheck()) {
        env->CallStaticVoidMethod(self->native_, self->checkpoint_, self->listener_, text, weights,
                                  history);
      }
    });
  }

  static jobject buffer(JNIEnv* env, const void* bytes, uint64_t size) {
    return env->NewDirectByteBuffer(const_cast<void*>(bytes), static_cast<jlong>(size));
  }

  /// Runs one call-back in a frame of its own, so that a long run leaves no local references.
  template <typename Body>
  int call(Body body) {
    JNIEnv* env = this->env();
    if (env->PushLocalFrame(8) == 0) {
      body(env);
    }
    if (jthrowable thrown = env->ExceptionOccurred()) {
      env->ExceptionClear();
      if (!thrown_) thrown_ = static_cast<jthrowable>(env->NewGlobalRef(thrown));
    }
    env->PopLocalFrame(nullptr);
    return thrown_ ? 1 : 0;
  }

  JNIEnv* env() const {
    void* env = nullptr;
    vm_->GetEnv(&env, JNI_VERSION_10);
    return static_cast<JNIEnv*>(env);
  }

  JavaVM* vm_ = nullptr;
  jobject listener_;
  jclass native_ = nullptr;
  jmethodID event_ = nullptr;
  jmethodID checkpoint_ = nullptr;
  jthrowable thrown_ = nullptr;
};

struct JavaTrainer {
  JavaTrainer(JNIEnv* env, jobject java_listener) : listener(env, java_listener) {}
  ~JavaTrainer() {
    if (trainer) cft_trainer_destroy(trainer);
  }

  Listener listener;
  cft_callbacks callbacks = listener.callbacks();
  cft_trainer* trainer = nullptr;
};

cft_trainer* trainer_of(jlong handle) { return object<JavaTrainer>(handle)->trainer; }

}  // namespace

CFT_JNI(jlong, trainerCreate)(JNIEnv* env, jclass, jbyteArray options, jobject listener) try {
  auto java = std::make_unique<JavaTrainer>(env, listener);
  const int code =
      cft_trainer_create(to_text(env, options).c_str(), &java->callbacks, &java->trainer);
  return check(env, code) ? address_of(java.release()) : 0;
}
CFT_CATCH(jlong)

CFT_JNI(void, trainerRestore)
(JNIEnv* env, jclass, jlong handle, jbyteArray model, jbyteArray state) try {
  const Bytes weights(env, model);
  const Bytes history(env, state);
  check(env, cft_trainer_restore(trainer_of(handle), weights.data(), weights.size(), history.data(),
                                 history.size()));
}
CFT_CATCH(void)

CFT_JNI(void, trainerRestoreFiles)
(JNIEnv* env, jclass, jlong handle, jbyteArray model, jbyteArray state) try {
  const std::string weights = to_text(env, model);
  const std::string history = state ? to_text(env, state) : "";
  check(env, cft_trainer_restore_files(trainer_of(handle), weights.c_str(),
                                       state ? history.c_str() : nullptr));
}
CFT_CATCH(void)

CFT_JNI(void, trainerSave)
(JNIEnv* env, jclass, jlong handle, jbyteArray model, jbyteArray state) try {
  const std::string weights = to_text(env, model);
  const std::string history = state ? to_text(env, state) : "";
  check(env,
        cft_trainer_save(trainer_of(handle), weights.c_str(), state ? history.c_str() : nullptr));
}
CFT_CATCH(void)

CFT_JNI(void, trainerValidation)(JNIEnv* env, jclass, jlong handle, jlong rows) try {
  check(env, cft_trainer_validation(trainer_of(handle), object<cft_rows>(rows)));
}
CFT_CATCH(void)

CFT_JNI(void, trainerRun)(JNIEnv* env, jclass, jlong handle, jlong group, jlong rows) try {
  auto* java = object<JavaTrainer>(handle);
  const int code = cft_trainer_run(java->trainer, object<cft_group>(group), object<cft_rows>(rows));
  if (!java->listener.rethrow(env)) check(env, code);
}
CFT_CATCH(void)

CFT_JNI(void, trainerCancel)(JNIEnv* env, jclass, jlong handle) try {
  cft_trainer_cancel(trainer_of(handle));
}
CFT_CATCH(void)

CFT_JNI(void, trainerCheckpoint)(JNIEnv* env, jclass, jlong handle) try {
  check(env, cft_trainer_checkpoint(trainer_of(handle)));
}
CFT_CATCH(void)

CFT_JNI(jbyteArray, trainerRows)(JNIEnv* env, jclass, jlong handle) try {
  return text_from(env, [&](char** out) { return cft_trainer_rows(trainer_of(handle), out); });
}
CFT_CATCH(jbyteArray)

CFT_JNI(jbyteArray, trainerSeconds)(JNIEnv* env, jclass, jlong handle) try {
  return text_from(env, [&](char** out) { return cft_trainer_seconds(trainer_of(handle), out); });
}
CFT_CATCH(jbyteArray)

CFT_JNI(jbyteArray, trainerResult)(JNIEnv* env, jclass, jlong handle) try {
  return text_from(env, [&](char** out) { return cft_trainer_result(trainer_of(handle), out); });
}
CFT_CATCH(jbyteArray)

CFT_JNI(jbyteArray, trainerModel)(JNIEnv* env, jclass, jlong handle) try {
  return bytes_from(env, [&](void** out, uint64_t* size) {
    return cft_trainer_model(trainer_of(handle), out, size);
  });
}
CFT_CATCH(jbyteArray)

CFT_JNI(jbyteArray, trainerState)(JNIEnv* env, jclass, jlong handle) try {
  return bytes_from(env, [&](void** out, uint64_t* size) {
    return cft_trainer_state(trainer_of(handle), out, size);
  });
}
CFT_CATCH(jbyteArray)

CFT_JNI(void, trainerDestroy)(JNIEnv* env, jclass, jlong handle) try {
  delete object<JavaTrainer>(handle);
}
CFT_CATCH(void)
