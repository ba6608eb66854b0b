// SPDX-License-Identifier: Apache-2.0
package cafetiere.core.score;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import cafetiere.core.CafetiereException;
import cafetiere.core.Predictor;
import cafetiere.core.net.Net;
import cafetiere.spark.TestWeights;
import cafetiere.spark.util.Json;
import com.fasterxml.jackson.databind.node.ObjectNode;
import com.sun.management.ThreadMXBean;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.stream.IntStream;
import org.apache.spark.unsafe.Platform;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Rows are scored one by one in a JVM without Spark. */
class ScorerTest {
  private static final int INPUTS = 10;
  private static final int ROWS = 1_000;
  private static final String NET = """
      name: "small"
      layer { name: "in" type: "MemoryData" top: "data" top: "label" transform_param { scale: 0.5 }
        memory_data_param { batch_size: 32 channels: 10 height: 1 width: 1 } }
      layer { name: "hidden" type: "InnerProduct" bottom: "data" top: "hidden"
        inner_product_param { num_output: 64 weight_filler { type: "xavier" } } }
      layer { name: "relu" type: "ReLU" bottom: "hidden" top: "hidden" }
      layer { name: "score" type: "InnerProduct" bottom: "hidden" top: "score"
        inner_product_param { num_output: 2 weight_filler { type: "xavier" } } }
      layer { name: "loss" type: "SoftmaxWithLoss" bottom: "score" bottom: "label" top: "loss" }
      """;

  @TempDir static Path folder;
  private static Path weights;

  @BeforeAll
  static void save() {
    weights = folder.resolve("small.caffemodel");
    try (Net net = Net.of(NET, "TEST")) {
      net.save(weights.toString());
    }
  }

  @Test
  void rowsHaveTheBitsOfATablesRows() throws IOException {
    float[] rows = random();
    float[] expected = ofEncodedRows(rows);
    for (int batch : new int[] {1, 0, 7}) {
      float[] scores = new float[2 * ROWS];
      try (Scorer scorer = new Scorer(NET, Files.readAllBytes(weights), "", batch)) {
        assertEquals(2, scorer.size());
        scorer.score(ROWS, rows, scores);
        assertArrayEquals(expected, scores, "batch " + batch);
        assertArrayEquals(expected, oneByOne(scorer, rows), "one by one, batch " + batch);
      }
    }
  }

  @Test
  void aMillionCallsAllocateNothing() throws IOException {
    ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
    float[] row = Arrays.copyOf(random(), INPUTS);
    float[] score = new float[2];
    try (Scorer scorer = open()) {
      for (int i = 0; i < 1_000; i++) scorer.score(row, score);
      long me = Thread.currentThread().getId();
      threads.getThreadAllocatedBytes(me);
      long before = threads.getThreadAllocatedBytes(me);
      for (int i = 0; i < 1_000_000; i++) scorer.score(row, score);
      long allocated = threads.getThreadAllocatedBytes(me) - before;
      // The compiler replaces the loop in mid-run, for which some JVMs allocate once.
      assertTrue(allocated < 16_384, allocated + " bytes for 1,000,000 calls");
    }
    assertNotEquals(0, score[0]);
  }

  @Test
  void eachThreadHasOneThatSharesTheWeights() throws IOException {
    float[] rows = random();
    float[] expected = ofEncodedRows(rows);
    Scorer first = open();
    List<Scorer> scorers = IntStream.range(0, 4).mapToObj(i -> first.share()).toList();
    first.close();
    scorers.parallelStream().forEach(scorer -> {
      assertArrayEquals(expected, oneByOne(scorer, rows));
      scorer.close();
    });
    assertThrows(IllegalStateException.class, () -> first.score(rows, new float[2]));
  }

  @Test
  void whatDoesNotFitIsRefused() throws IOException {
    try (Scorer scorer = open()) {
      String message = assertThrows(CafetiereException.class,
          () -> scorer.score(new float[INPUTS - 1], new float[2])).getMessage();
      assertTrue(message.contains("9"), message);
      message = assertThrows(CafetiereException.class,
          () -> scorer.score(new float[INPUTS], new float[1])).getMessage();
      assertTrue(message.contains("'score' has space for 1 floats"), message);
      assertThrows(CafetiereException.class, () -> scorer.score(null, new float[2]));
    }
  }

  @Test
  void aNetThatEndsInTwoBlobsIsAskedForOne() throws IOException {
    String two = NET + """
        layer { name: "more" type: "InnerProduct" bottom: "hidden" top: "more"
          inner_product_param { num_output: 3 } }""";
    byte[] model = TestWeights.initial(two);
    String message = assertThrows(
        IllegalArgumentException.class, () -> new Scorer(two, model, "")).getMessage();
    assertTrue(message.contains("name the one"), message);
    byte[] others = Files.readAllBytes(weights);  // those of "more" are not needed
    try (Scorer scorer = new Scorer(two, others, "score")) {
      assertEquals(2, scorer.size());
    }
  }

  private static Scorer open() throws IOException {
    Path net = folder.resolve("small.prototxt");
    Files.writeString(net, NET);
    return Scorer.open(net, weights, "score");
  }

  private static float[] random() {
    Random random = new Random(3);
    float[] rows = new float[ROWS * INPUTS];
    for (int i = 0; i < rows.length; i++) rows[i] = (float) random.nextGaussian();
    return rows;
  }

  private static float[] oneByOne(Scorer scorer, float[] rows) {
    float[] scores = new float[2 * ROWS];
    float[] score = new float[2];
    for (int i = 0; i < ROWS; i++) {
      scorer.score(Arrays.copyOfRange(rows, i * INPUTS, (i + 1) * INPUTS), score);
      System.arraycopy(score, 0, scores, 2 * i, 2);
    }
    return scores;
  }

  /** What a task of a transform computes, with the net's batch. */
  private static float[] ofEncodedRows(float[] rows) throws IOException {
    long bytes = ROWS * (4L + 4 * INPUTS);
    long chunk = Platform.allocateMemory(bytes);
    long to = chunk;
    for (int i = 0; i < rows.length; i++, to += 4) {
      if (i % INPUTS == 0) {
        Platform.putInt(null, to, 4 * INPUTS);
        to += 4;
      }
      Platform.putFloat(null, to, rows[i]);
    }
    ObjectNode options = Json.object().put("net", NET);
    options.putObject("schema").put("id", "").putArray("columns").addObject()
        .put("name", "data").put("type", "f32");
    ByteBuffer[] scores = {Predictor.allocate(2 * ROWS)};
    try (Predictor predictor =
        new Predictor(options.toString(), Files.readAllBytes(weights))) {
      predictor.run(ROWS, chunk, bytes, scores);
    } finally {
      Platform.freeMemory(chunk);
    }
    float[] floats = new float[2 * ROWS];
    scores[0].asFloatBuffer().get(floats);
    return floats;
  }
}
