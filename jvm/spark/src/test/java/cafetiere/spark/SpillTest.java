// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import cafetiere.spark.feed.RowRoom;
import cafetiere.spark.util.Json;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Collection;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** A table of 192 MiB where executors have 64 MiB for rows. */
@LongRun
@Timeout(value = 600, unit = TimeUnit.SECONDS)
class SpillTest {
  private static final int MIB = 1 << 20;
  private static final int ROW_BYTES = 3 * 64 * 64;
  private static final int ROWS = 192 * MIB / ROW_BYTES;
  private static final int STEPS = 400;
  private static final String FILE = "cafetiere-rows-";
  private static final String NET = """
      name: "wide"
      layer { name: "rows" type: "MemoryData" top: "image" top: "label"
        memory_data_param { batch_size: 64 channels: 3 height: 64 width: 64 }
        transform_param { scale: 0.004 } }
      layer { name: "ip" type: "InnerProduct" bottom: "image" top: "ip"
        inner_product_param { num_output: 10 weight_filler { type: "xavier" } } }
      layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }
      """;

  @TempDir Path dir;

  @Test
  void rowsBeyondTheLimitSpillAndTheBitsAreTheSame() throws Exception {
    SparkSession spark = TestImages.session();
    String inMemory = sha256(fit(table(spark, ROWS), 2, dir.resolve("memory")));
    Path log = dir.resolve("log");
    Process driver = DriverProcess.start(Driver.class, log, dir.toString());
    assertEquals(0, driver.waitFor(), () -> DriverProcess.read(log));

    JsonNode told = Json.parse(DriverProcess.read(dir.resolve("answer")));
    assertEquals(inMemory, told.path("calm").asText(), told::toString);
    assertEquals(inMemory, told.path("killed").asText(), told::toString);
    assertTrue(told.path("attempts").asInt() > 1, told::toString);
    assertTrue(told.path("mapped_mib").asLong() >= 128, told::toString);
    assertTrue(told.path("grown_mib").asLong() <= 80, told::toString);
    assertEquals("", told.path("left").asText());
  }

  private static Dataset<Row> table(SparkSession spark, int rows) {
    return spark.range(rows).selectExpr("id", "cast(id % 10 as int) label",
        "unhex(repeat(sha2(cast(id as string), 256), " + ROW_BYTES / 32 + ")) image");
  }

  private static JsonNode fit(Dataset<Row> table, int workers, Path checkpoints) {
    CaffeModel model = new CaffeEstimator()
        .setSolver("base_lr: 0.0001 lr_policy: \"fixed\" max_iter: " + STEPS + " random_seed: 7")
        .setNet(NET).setFeaturesCol("image").setLabelCol("label")
        .setNumWorkers(workers).setShards(2)
        .setCheckpointDir(checkpoints.toUri().toString()).setCheckpointInterval(20).fit(table);
    return Json.parse(model.result());
  }

  private static String sha256(JsonNode result) {
    return result.path("sha256").asText();
  }

  /** Trains with few bytes for rows: undisturbed on one executor, then with one of two killed. */
  static final class Driver {
    private Driver() {}

    public static void main(String[] args) throws Exception {
      Path dir = Path.of(args[0]);
      Path local = Files.createDirectory(dir.resolve("local"));
      ObjectNode told = Json.object();
      // The heap does not grow, and Spark's buffers are in it.
      try (SparkSession spark = SparkSession.builder().appName("spill")
          .master("local-cluster[2,1,512]").config("spark.executor.memory", "512m")
          .config(RowRoom.SETTING, "64m").config("spark.local.dir", local.toString())
          .config("spark.shuffle.io.preferDirectBufs", false)
          .config("spark.executor.extraJavaOptions",
              "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xms512m -XX:+AlwaysPreTouch")
          .getOrCreate()) {
        fit(table(spark, ROWS / 4), 2, dir.resolve("small"));  // warms both executors
        try (Memory memory = new Memory(TestImages.executorPids(spark), local)) {
          told.put("calm", sha256(fit(table(spark, ROWS), 1, dir.resolve("calm"))));
          told.put("grown_mib", memory.grown() / MIB).put("mapped_mib", memory.mapped / MIB);
        }
        Collection<Long> executors = TestImages.executorPids(spark);
        CompletableFuture<Void> kill = CompletableFuture.runAsync(() -> {
          KillTest.awaitCheckpoint(dir.resolve("killed"));
          long victim = executors.stream().filter(pid -> mapped(pid, local) > 0).findFirst()
              .orElseThrow();
          Processes.signal("KILL", victim);
        });
        JsonNode killed = fit(table(spark, ROWS), 2, dir.resolve("killed"));
        kill.get();
        told.put("killed", sha256(killed)).put("attempts", killed.path("attempts").asInt());
        fit(table(spark, ROWS / 4), 1, dir.resolve("next"));
        try (Stream<Path> paths = Files.walk(local)) {
          told.put("left", String.join(" ", paths.map(Path::toString)
              .filter(path -> path.contains(FILE)).toList()));
        }
      }
      Files.writeString(dir.resolve("answer"), told.toString());
    }
  }

  /** The most that executors have taken while it watches, beside files, and of rows in files. */
  private static final class Memory implements AutoCloseable {
    private static final int POLL_MILLIS = 20;

    private final Map<Long, Long> before = new HashMap<>();
    private final CountDownLatch end = new CountDownLatch(1);
    private final Thread watch;
    private volatile long grown;
    private volatile long mapped;

    Memory(Collection<Long> executors, Path local) {
      executors.forEach(pid -> before.put(pid, anonymous(pid)));
      watch = new Thread(() -> {
        try {
          do {
            for (long pid : executors) {
              grown = Math.max(grown, anonymous(pid) - before.get(pid));
              mapped = Math.max(mapped, mapped(pid, local));
            }
          } while (!end.await(POLL_MILLIS, TimeUnit.MILLISECONDS));
        } catch (InterruptedException e) {
          Thread.currentThread().interrupt();
        }
      });
      watch.start();
    }

    /** Also what they have taken until now. */
    long grown() {
      close();
      return grown;
    }

    @Override
    public void close() {
      end.countDown();
      try {
        watch.join();
      } catch (InterruptedException e) {
        Thread.currentThread().interrupt();
      }
    }
  }

  private static long anonymous(long pid) {
    Matcher line = Pattern.compile("RssAnon:\\s+(\\d+) kB").matcher(read(pid, "status"));
    return line.find() ? Long.parseLong(line.group(1)) * 1024 : 0;
  }

  /** Bytes of rows in files below a folder that a process maps; they have no name any more. */
  private static long mapped(long pid, Path local) {
    Pattern mapping = Pattern.compile("(?m)^(\\w+)-(\\w+) .* " + Pattern.quote(local.toString())
        + "/\\S*" + FILE + "\\S+ \\(deleted\\)$");
    return mapping.matcher(read(pid, "maps")).results().mapToLong(
        found -> Long.parseLong(found.group(2), 16) - Long.parseLong(found.group(1), 16)).sum();
  }

  private static String read(long pid, String file) {
    try {
      return Files.readString(Path.of("/proc", Long.toString(pid), file));
    } catch (IOException e) {
      return "";
    }
  }
}
