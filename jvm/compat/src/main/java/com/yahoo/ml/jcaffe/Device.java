// SPDX-License-Identifier: Apache-2.0
package com.yahoo.ml.jcaffe;

import caffe.Caffe.SolverParameter;
import cafetiere.core.net.Layer;
import cafetiere.core.net.Net;
import cafetiere.core.net.Solver;
import cafetiere.jcaffe.Json;
import java.nio.ByteBuffer;
import java.util.List;

/** One of a CaffeNet's devices: its solver, where it trains, and the net of phase TEST on its weights. */
final class Device implements AutoCloseable {
  private final SolverParameter solverParameter;
  private final int testNet;
  private final Solver solver; // null: it only predicts
  private final Net training; // likewise
  private Net testing; // made when it is first asked for

  /** {@code rank}: among all devices, each of which draws random numbers of its own. */
  Device(SolverParameter solverParameter, boolean trains, int testNet, int rank) {
    this.solverParameter = solverParameter;
    this.testNet = testNet;
    solver = trains ? new Solver(solverOptions(rank)) : null;
    training = trains ? solver.net() : null;
  }

  /** The solver without the tests and snapshots that it would make on its own. */
  private String solverOptions(int rank) {
    SolverParameter.Builder own = solverParameter.toBuilder();
    own.clearTestNet().clearTestNetParam().clearTestState().clearTestIter().clearTestInterval();
    own.clearSnapshot().setSnapshotAfterTrain(false);
    if (solverParameter.getRandomSeed() >= 0) {
      own.setRandomSeed(solverParameter.getRandomSeed() + rank);
    }
    return Json.object("text", own.build().toString(), "seed", 1 + rank);
  }

  /** The solver of a device that trains. */
  Solver solver() {
    if (solver == null) {
      throw new IllegalStateException("this CaffeNet was made with isTraining = false");
    }
    return solver;
  }

  boolean trains() {
    return solver != null;
  }

  /** Goes on from files; null or "" is none. */
  void load(String model, String state) {
    if (state != null && !state.isEmpty()) {
      solver().restore(state);
    }
    if (model != null && !model.isEmpty()) {
      (trains() ? training : testing()).copyFrom(model);
    }
  }

  /** Does one iteration on a batch. */
  void train(FloatBlob[] data) {
    Solver trained = solver();
    feed(training, data);
    trained.step(1);
  }

  /** Runs the net of phase TEST on a batch. */
  Net test(FloatBlob[] data) {
    Net net = testing();
    feed(net, data);
    net.forward();
    return net;
  }

  /** The net of phase TEST. */
  Net testing() {
    if (testing == null) {
      testing = new Net(testOptions());
      if (trains()) {
        testing.shareWith(training);
      }
    }
    return testing;
  }

  private String testOptions() {
    boolean hasState = testNet < solverParameter.getTestStateCount();
    List<String> stages =
        hasState ? solverParameter.getTestState(testNet).getStageList() : List.of();
    int level = hasState ? solverParameter.getTestState(testNet).getLevel() : 0;
    boolean isText = testNet < solverParameter.getTestNetParamCount()
        || (testNet >= solverParameter.getTestNetCount() && solverParameter.hasNetParam());
    return Json.object(isText ? "text" : "path", isText ? testText() : testPath(), "phase", "TEST",
        "level", level, "stages", stages);
  }

  private String testText() {
    return testNet < solverParameter.getTestNetParamCount()
        ? solverParameter.getTestNetParam(testNet).toString()
        : solverParameter.getNetParam().toString();
  }

  private String testPath() {
    return testNet < solverParameter.getTestNetCount()
        ? solverParameter.getTestNet(testNet)
        : solverParameter.getNet();
  }

  /** Gives a net's first layer its tops' values, one blob for each. */
  private static void feed(Net net, FloatBlob[] data) {
    if (data == null) {
      throw new IllegalArgumentException("data is null");
    }
    Layer source = net.layers().get(0);
    if (data.length != source.tops().size()) {
      throw new IllegalArgumentException("layer '" + source.name() + "' has "
          + source.tops().size() + " tops, and data has " + data.length + " blobs");
    }
    ByteBuffer[] values = new ByteBuffer[data.length];
    for (int i = 0; i < data.length; ++i) {
      values[i] = checked(net, source.tops().get(i), data[i]);
    }
    if (source.type().equals("MemoryData")) {
      long rows = net.blob(source.tops().get(1)).count();
      net.setInput(source.name(), values[0], values[1], rows);
      return;
    }
    for (int i = 0; i < data.length; ++i) {
      net.blob(source.tops().get(i)).data().put(values[i]);
    }
  }

  private static ByteBuffer checked(Net net, int top, FloatBlob blob) {
    if (blob == null || blob.count() != net.blob(top).count()) {
      throw new IllegalArgumentException("top '" + net.blobNames().get(top) + "' takes "
          + net.blob(top).count() + " floats, and its blob has "
          + (blob == null ? "none: it is null" : blob.count()));
    }
    return blob.data();
  }

  @Override
  public void close() {
    for (AutoCloseable part : new AutoCloseable[] {testing, training, solver}) {
      try {
        if (part != null) {
          part.close();
        }
      } catch (Exception e) {
        throw new IllegalStateException(e);
      }
    }
  }
}
