// SPDX-License-Identifier: Apache-2.0

import cafetiere.core.score.CellType;
import cafetiere.core.score.Scorer;
import cafetiere.core.score.TableScorer;
import com.sun.management.ThreadMXBean;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.LocalDate;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;

/** CPU time and bytes of the Java heap of a call that scores one row. bench/scorer runs it. */
public final class ScorerTimes {
  private static final int SERIES = 9;
  private static final double SECONDS = 0.5;
  private static final ThreadMXBean THREADS = (ThreadMXBean) ManagementFactory.getThreadMXBean();

  private ScorerTimes() {}

  /** {@code args}: a folder with NAME.prototxt and NAME.caffemodel of mlp and lenet, and the model visitors. */
  public static void main(String[] args) throws Exception {
    Path folder = Path.of(args[0]);
    try (Scorer mlp = open(folder, "mlp", "score"); Scorer lenet = open(folder, "lenet", "ip2")) {
      float[] few = row(10);
      float[] image = row(784);
      float[] two = new float[2];
      float[] ten = new float[10];
      print("Scorer, 10-64-2", () -> mlp.score(few, two));
      print("Scorer, LeNet", () -> lenet.score(image, ten));
    }
    Map<String, CellType> columns = new LinkedHashMap<>();
    columns.put("age", CellType.LONG);
    columns.put("city", CellType.TEXT);
    columns.put("since", CellType.DATE);
    List<Object> cells = new ArrayList<>(Arrays.asList(31L, "Bern", LocalDate.of(2026, 7, 1)));
    String net = Files.readString(folder.resolve("visitors/net.prototxt"));
    byte[] weights = Files.readAllBytes(folder.resolve("visitors/model.caffemodel"));
    try (TableScorer visitors = new TableScorer(net, weights, columns, "probability")) {
      float[] score = new float[visitors.size()];
      print("TableScorer, number, text and date", () -> visitors.score(cells, score));
    }
  }

  private static Scorer open(Path folder, String name, String output) throws Exception {
    return Scorer.open(folder.resolve(name + ".prototxt"), folder.resolve(name + ".caffemodel"), output);
  }

  private static float[] row(int floats) {
    float[] row = new float[floats];
    for (int i = 0; i < floats; i++) row[i] = i * 37 % 101 / 101f;
    return row;
  }

  /** Least, median and greatest of the series, after one that warms up. */
  private static void print(String name, Runnable call) {
    long calls = 1_000;
    while (seconds(call, calls) < SECONDS) calls *= 2;
    double[] micros = new double[SERIES];
    long before = THREADS.getThreadAllocatedBytes(Thread.currentThread().getId());
    for (int i = 0; i < SERIES; i++) micros[i] = 1e6 * seconds(call, calls) / calls;
    long bytes = THREADS.getThreadAllocatedBytes(Thread.currentThread().getId()) - before;
    Arrays.sort(micros);
    System.out.printf(Locale.ROOT, "%-36s %8.2f (%.2f .. %.2f) us, %.3f bytes a call%n", name,
        micros[SERIES / 2], micros[0], micros[SERIES - 1], bytes / (double) (SERIES * calls));
  }

  private static double seconds(Runnable call, long calls) {
    long begun = THREADS.getCurrentThreadCpuTime();
    for (long i = 0; i < calls; i++) call.run();
    return (THREADS.getCurrentThreadCpuTime() - begun) / 1e9;
  }
}
