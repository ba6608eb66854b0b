// SPDX-License-Identifier: Apache-2.0
// JNI glue for cafetiere.core.net.Solver.
#include <nlohmann/json.hpp>

#include "jvm/native/net.h"

using namespace cafetiere::jni;

CFT_NET(jlong, solverCreate)(JNIEnv* env, jclass, jbyteArray options, jobject listener) try {
  const std::string text = to_text(env, options);
  return make_handle(env, listener, [&](NetOwner& owner) {
    return cft_solver_create(text.c_str(), owner.listener.host(), &owner.solver);
  });
}
CFT_CATCH(jlong)

CFT_NET(jbyteArray, solverDescribe)(JNIEnv* env, jclass, jlong solver) try {
  return text_from(env, [&](char** out) { return cft_solver_describe(solver_of(solver), out); });
}
CFT_CATCH(jbyteArray)

/// A number that cft_solver_describe() gives.
CFT_NET(jdouble, solverNumber)(JNIEnv* env, jclass, jlong solver, jbyteArray name) try {
  char* out = nullptr;
  if (!check(env, cft_solver_describe(solver_of(solver), &out))) return 0;
  const std::unique_ptr<char, void (*)(void*)> owned(out, cft_free);
  return nlohmann::json::parse(owned.get()).at(to_text(env, name)).get<double>();
}
CFT_CATCH(jdouble)

/// A handle of its own, of a net that the solver keeps.
CFT_NET(jlong, solverNet)(JNIEnv* env, jclass, jlong solver, jint test) try {
  cft_net* net = nullptr;
  if (!check(env, cft_solver_net(solver_of(solver), test, &net))) return 0;
  return address_of(new NetHandle{object<NetHandle>(solver)->owner, net});
}
CFT_CATCH(jlong)

CFT_NET(void, solverJoin)(JNIEnv* env, jclass, jlong solver, jlong group) try {
  check(env, cft_solver_join(solver_of(solver), object<cft_group>(group)));
}
CFT_CATCH(void)

CFT_NET(void, solverStep)(JNIEnv* env, jclass, jlong solver, jint iterations) try {
  check(env, cft_solver_step(solver_of(solver), iterations));
}
CFT_CATCH(void)

CFT_NET(void, solverSolve)(JNIEnv* env, jclass, jlong solver) try {
  check(env, cft_solver_solve(solver_of(solver)));
}
CFT_CATCH(void)

CFT_NET(void, solverApplyUpdate)(JNIEnv* env, jclass, jlong solver) try {
  check(env, cft_solver_apply_update(solver_of(solver)));
}
CFT_CATCH(void)

CFT_NET(void, solverSetBaseRate)(JNIEnv* env, jclass, jlong solver, jfloat rate) try {
  check(env, cft_solver_set_base_lr(solver_of(solver), rate));
}
CFT_CATCH(void)

CFT_NET(void, solverSnapshot)(JNIEnv* env, jclass, jlong solver) try {
  check(env, cft_solver_snapshot(solver_of(solver)));
}
CFT_CATCH(void)

CFT_NET(void, solverRestore)(JNIEnv* env, jclass, jlong solver, jbyteArray path) try {
  check(env, cft_solver_restore(solver_of(solver), to_text(env, path).c_str()));
}
CFT_CATCH(void)
