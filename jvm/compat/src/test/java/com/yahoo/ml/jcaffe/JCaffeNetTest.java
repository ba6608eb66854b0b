// SPDX-License-Identifier: Apache-2.0
package com.yahoo.ml.jcaffe;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Nets that callers feed, alone and together. */
class JCaffeNetTest {
  @TempDir
  Path folder;

  @Test
  void leNetLearnsAndPredicts() throws IOException {
    CaffeNet net = net(Digits.solver(folder, Digits.memoryData(), ""), true);
    assertEquals(0, net.localAddresses().length);
    assertTrue(net.connect(null) && net.sync() && net.init(0, true));
    Digits digits = new Digits(1);
    for (int i = 0; i < 60; ++i) {
      assertTrue(net.train(0, digits.batch()));
    }
    FloatBlob[] test = digits.batch();
    FloatBlob[] outputs = net.predict(0, test, new String[] {"loss", "accuracy", "ip1"});
    assertTrue(outputs[0].cpu_data().get(0) < 0.5, "loss " + outputs[0].cpu_data().get(0));
    assertTrue(outputs[1].cpu_data().get(0) > 0.8, "accuracy " + outputs[1].cpu_data().get(0));
    assertEquals(Digits.BATCH * 100, outputs[2].count());

    assertEquals(60, net.snapshot());
    String model = net.snapshotFilename(60, false);
    String state = net.snapshotFilename(60, true);
    assertTrue(Files.exists(Path.of(model)) && Files.exists(Path.of(state)));
    String solver = folder.resolve("solver.prototxt").toString();
    CaffeNet resumed = new CaffeNet(solver, model, state, 1, 1, 0, true, CaffeNet.NONE, -1, 0);
    assertEquals(60, resumed.getInitIter(0));
    CaffeNet loaded = new CaffeNet(solver, model, "", 1, 1, 0, false, CaffeNet.NONE, -1, 0);
    assertEquals(-1, loaded.snapshot());
    assertThrows(IllegalStateException.class, () -> loaded.train(0, test));
    FloatBlob[] again = loaded.predict(0, test, new String[] {"ip2"});
    assertArrayEquals(values(net.predict(0, test, new String[] {"ip2"})[0]), values(again[0]));

    FloatBlob[] next = digits.batch();
    net.train(0, next);
    resumed.train(0, next);
    assertArrayEquals(values(net.predict(0, test, new String[] {"ip2"})[0]),
        values(resumed.predict(0, test, new String[] {"ip2"})[0]));
    net.deallocate();
    net.deallocate();
    assertThrows(IllegalStateException.class, () -> net.train(0, next));
  }

  @Test
  void validationAddsUpTheOutputs() throws IOException {
    CaffeNet net = net(Digits.solver(folder, Digits.cosData(), ""), true);
    String[] names = net.getValidationOutputBlobNames();
    assertArrayEquals(new String[] {"accuracy", "loss"}, names);
    Digits digits = new Digits(2);
    net.validation(digits.batch());
    net.validation(digits.batch());
    assertTrue(net.getValidationOutputBlobs(2)[1].cpu_data().get(0) > 1);
    net.aggregateValidationOutputs();
    net.train(0, digits.batch());
    net.deallocate();
  }

  @Test
  void whatIsNotThere() throws IOException {
    String solver = Digits.solver(folder, Digits.memoryData(), "snapshot_format: HDF5");
    CaffeNet net = net(solver, true);
    assertFalse(net.init(-1) || net.init(1));
    assertEquals(-1, net.deviceID(-1));
    assertEquals(0, net.deviceID(0));
    assertEquals(-1, net.getInitIter(-1));
    assertEquals(-1, net.getMaxIter(-1));
    assertEquals(2000, net.getMaxIter(0));
    assertEquals(-1, net.getTestIter(-1));
    assertEquals(10, net.getTestIter(0));
    assertEquals(100, net.getTestInterval());
    assertNull(net.snapshotFilename(-1, false));
    assertTrue(net.snapshotFilename(0, true).endsWith("lenet_iter_0.solverstate.h5"));
    assertThrows(IllegalArgumentException.class, () -> net.train(0, null));
    assertThrows(IllegalArgumentException.class, () -> net.predict(0, null, new String[0]));
    assertThrows(IllegalArgumentException.class, () -> net.train(-1, new Digits(1).batch()));
    FloatBlob[] small = {new FloatBlob(), new FloatBlob()};
    small[0].reshape(1, 1, 28, 28);
    String told =
        assertThrows(IllegalArgumentException.class, () -> net.train(0, small)).getMessage();
    assertEquals("top 'data' takes 12544 floats, and its blob has 784", told);
    assertThrows(RuntimeException.class,
        () -> net.predict(0, new Digits(1).batch(), new String[] {"nothing"}));
    assertThrows(IOException.class, () -> net("/no/such/file", true));
    assertThrows(IllegalArgumentException.class, () ->
        new CaffeNet(solver, "", "", 1, 2, 0, true, CaffeNet.NONE, -1, 0));
    CaffeNet one = new CaffeNet(solver, "", "", 1, 2, 0, false, CaffeNet.SOCKET, -1, 0);
    assertEquals(2, one.localAddresses().length);
    assertThrows(IllegalArgumentException.class,
        () -> one.connect(new String[] {"0x222", "0x333"}));
    one.deallocate();
    net.deallocate();
  }

  /** Two nodes with a device each, and one with two. */
  @Test
  void connectedNetsTrainLikeOne() throws Exception {
    String solver = Digits.solver(folder, Digits.memoryData(), "");
    List<CaffeNet> nodes = new ArrayList<>();
    for (int rank = 0; rank < 2; ++rank) {
      nodes.add(new CaffeNet(solver, "", "", 1, 2, rank, true, CaffeNet.SOCKET, -1, 0));
    }
    String[] from0 = nodes.get(0).localAddresses();
    String[] from1 = nodes.get(1).localAddresses();
    assertEquals("", from0[0]);
    assertNotEquals(from0[1], from1[0]);
    CaffeNet whole = new CaffeNet(solver, "", "", 2, 1, 0, true, CaffeNet.NONE, -1, 0);
    whole.connect(whole.localAddresses());

    ExecutorService threads = Executors.newFixedThreadPool(2);
    bothOf(threads, rank -> nodes.get(rank)
        .connect(rank == 0 ? new String[] {null, from1[0]} : new String[] {from0[1], null}));
    bothOf(threads, rank -> nodes.get(rank).sync());
    Digits[] rows = {new Digits(1), new Digits(2), new Digits(1), new Digits(2)};
    bothOf(threads, rank -> {
      for (int i = 0; i < 5; ++i) {
        nodes.get(rank).train(0, rows[rank].batch());
      }
      return true;
    });
    bothOf(threads, device -> {
      for (int i = 0; i < 5; ++i) {
        whole.train(device, rows[2 + device].batch());
      }
      return true;
    });
    threads.shutdown();
    FloatBlob[] test = new Digits(3).batch();
    String[] scores = {"ip2"};
    float[] expected = values(whole.predict(0, test, scores)[0]);
    assertArrayEquals(expected, values(whole.predict(1, test, scores)[0]));
    assertArrayEquals(expected, values(nodes.get(0).predict(0, test, scores)[0]));
    assertArrayEquals(expected, values(nodes.get(1).predict(0, test, scores)[0]));
    assertEquals(5, nodes.get(1).snapshot()); // any node alone
    whole.deallocate();
    nodes.forEach(CaffeNet::deallocate);
  }

  private interface Work {
    boolean of(int index) throws Exception;
  }

  private static void bothOf(ExecutorService threads, Work work) throws Exception {
    List<Callable<Boolean>> tasks = List.of(() -> work.of(0), () -> work.of(1));
    for (Future<Boolean> done : threads.invokeAll(tasks)) {
      assertTrue(done.get());
    }
  }

  private static CaffeNet net(String solver, boolean isTraining) throws IOException {
    return new CaffeNet(solver, "", "", 1, 1, 0, isTraining, CaffeNet.NONE, -1, 0);
  }

  private static float[] values(FloatBlob blob) {
    float[] values = new float[blob.count()];
    for (int i = 0; i < values.length; ++i) {
      values[i] = blob.cpu_data().get(i);
    }
    return values;
  }
}
