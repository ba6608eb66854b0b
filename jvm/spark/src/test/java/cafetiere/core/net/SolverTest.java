// SPDX-License-Identifier: Apache-2.0
package cafetiere.core.net;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import cafetiere.core.Group;
import java.nio.FloatBuffer;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Solvers, step by step. */
class SolverTest {
  @TempDir
  Path folder;

  private String text(int seed, String more) {
    return "base_lr: 0.1 momentum: 0.9 lr_policy: 'step' stepsize: 2 gamma: 0.5 max_iter: 20 "
        + "random_seed: " + seed + " snapshot_prefix: '" + folder.resolve("s") + "' " + more
        + " net_param { " + NetTest.NET + " }";
  }

  @Test
  void goesOnFromASnapshotWithTheSameBits() {
    try (Solver solver = Solver.of(text(1, ""), null)) {
      Net net = solver.net();
      NetTest.fill(net, 0);
      solver.step(3);
      solver.snapshot();
      solver.step(3);
      assertEquals(6, solver.iter());
      assertEquals(20, solver.maxIter());
      assertEquals(0.025f, solver.rate(), 1e-7);
      try (Solver other = Solver.of(text(9, ""), null)) {
        NetTest.fill(other.net(), 0);
        other.restore(folder.resolve("s_iter_3.solverstate").toString());
        assertEquals(3, other.iter());
        other.step(3);
        assertEquals(weights(net), weights(other.net()));
      }
    }
  }

  @Test
  void aListenerFillsEachPassAndSeesTheGradients() {
    List<String> heard = new ArrayList<>();
    Net[] net = new Net[1];
    NetListener listener = new NetListener() {
      @Override
      public void message(int level, String text) {
        heard.add("log");
      }

      @Override
      public void pass() {
        NetTest.fill(net[0], heard.size());
        heard.add("pass");
      }

      @Override
      public void gradients() {
        assertNotEquals(0f, net[0].param(0).diff().asFloatBuffer().get(0));
        heard.add("gradients");
      }
    };
    try (Solver solver = Solver.of(text(1, "iter_size: 2 display: 0"), listener)) {
      net[0] = solver.net();
      heard.clear();
      solver.step(2);
      assertEquals(List.of("pass", "pass", "gradients", "pass", "pass", "gradients"), heard);
    }
    RuntimeException mine = new IllegalStateException("mine");
    NetListener thrower = new NetListener() {
      @Override
      public void pass() {
        throw mine;
      }
    };
    try (Solver solver = Solver.of(text(1, ""), thrower)) {
      assertSame(mine, assertThrows(IllegalStateException.class, () -> solver.step(1)));
    }
  }

  @Test
  void aNetOutlivesItsSolver() {
    Solver solver = Solver.of(text(1, ""), null);
    Net net = solver.net();
    solver.close();
    NetTest.fill(net, 0);
    assertTrue(net.forward() > 0);
    net.close();
    assertThrows(IllegalStateException.class, () -> solver.step(1));
    assertThrows(IllegalStateException.class, solver::net);
    NetTest.assertTells("no such test net", () -> {
      try (Solver other = Solver.of(text(1, ""), null)) {
        other.testNet(0);
      }
    });
  }

  @Test
  void ranksThatJoinedHaveTheSameWeights() throws Exception {
    ExecutorService threads = Executors.newFixedThreadPool(2);
    List<Group> groups = new ArrayList<>();
    for (int rank = 0; rank < 2; ++rank) {
      groups.add(new Group("{\"rank\": " + rank + ", \"size\": 2, \"secret\": \"" + "x".repeat(20)
          + "\", \"timeout_ms\": 30000}"));
      groups.get(rank).setSecret("agreed on by both ranks");
    }
    String addresses = "[\"" + groups.get(0).address() + "\", \"" + groups.get(1).address() + "\"]";
    List<Future<FloatBuffer>> weights = new ArrayList<>();
    for (int rank = 0; rank < 2; ++rank) {
      int mine = rank;
      weights.add(threads.submit(() -> {
        try (Group group = groups.get(mine);
            Solver solver = Solver.of(text(mine, ""), null)) {
          NetTest.fill(solver.net(), mine);
          group.connect(addresses);
          solver.join(group);
          group.barrier();
          solver.step(4);
          return weights(solver.net());
        }
      }));
    }
    assertEquals(weights.get(0).get(), weights.get(1).get());
    threads.shutdown();
    assertThrows(IllegalStateException.class, groups.get(0)::barrier);
  }

  private static FloatBuffer weights(Net net) {
    return net.param(0).data().asFloatBuffer();
  }
}
