// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.submit;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import cafetiere.spark.DriverProcess;
import cafetiere.spark.LongRun;
import cafetiere.spark.Submit;
import cafetiere.spark.TestImages;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.apache.spark.sql.SparkSession;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/**
 * {@code -connection infiniband} connects executors by UCX where it can, and no bit of the weights
 * shows it. Each executor is in a PID namespace of its own, so that they share no memory.
 */
@LongRun
@Timeout(value = 480, unit = TimeUnit.SECONDS)
class ConnectionTest {
  private static final int ROWS = 503;
  private static final int STEPS = 20;
  private static final List<String> SPLIT =
      List.of("unshare", "--pid", "--fork", "--kill-child", "--");

  @TempDir Path dir;

  @Test
  void executorsUseUcxIfAllHaveIt() throws Exception {
    assumeTrue(run("sh", "-c", "ldconfig -p | grep -q 'libucp[.]so[.]0'"), "UCX is not installed");
    assumeTrue(run("unshare", "--pid", "--fork", "true"), "unshare --pid is not allowed here");
    Path log = dir.resolve("log");
    Process driver = DriverProcess.start(Driver.class, log, dir.toString());
    assertEquals(0, driver.waitFor(), () -> DriverProcess.read(log));
    assertEquals(List.of(), told("ethernet"));
    List<String> used = told("infiniband");
    assertEquals(1, used.size(), used::toString);
    assertTrue(used.get(0).matches(".*: connection infiniband: UCX 1[.].* is used between hosts.*"),
        used::toString);
    List<String> encrypted = told("encrypted");
    assertEquals(1, encrypted.size(), encrypted::toString);
    assertTrue(encrypted.get(0).contains(": connection infiniband: TCP is used between hosts: the"
        + " connections are encrypted, which UCX cannot do"), encrypted::toString);
    assertArrayEquals(model("ethernet"), model("infiniband"));
    assertArrayEquals(model("ethernet"), model("encrypted"));
  }

  private static boolean run(String... command) throws IOException, InterruptedException {
    return new ProcessBuilder(command).start().waitFor() == 0;
  }

  /** The events of a training that tell what connects its ranks. */
  private List<String> told(String name) throws IOException {
    return Files.readAllLines(dir.resolve(name + ".jsonl")).stream()
        .filter(event -> event.contains("connection infiniband")).toList();
  }

  private byte[] model(String name) throws IOException {
    return Files.readAllBytes(dir.resolve(name + ".model"));
  }

  /** Trains by executors that are processes of hosts of their own, as far as they can see. */
  static final class Driver {
    private Driver() {}

    public static void main(String[] args) throws Exception {
      Path dir = Path.of(args[0]);
      Files.writeString(dir.resolve("lenet.prototxt"), TestImages.lenet());
      Files.writeString(dir.resolve("solver.prototxt"),
          TestImages.solver(STEPS) + " net: \"lenet.prototxt\"");
      try (SparkSession spark = SparkSession.builder().appName("connection")
          .master("local-cluster[2,1,512]").config("spark.executor.memory", "512m")
          .config("spark.executorEnv.JAVA_HOME", splitJava(dir).toString())
          .config("spark.executorEnv.UCX_TLS", "tcp,self").getOrCreate()) {
        TestImages.images(spark, ROWS).write().parquet(uri(dir, "train.parquet"));
        train(spark, dir, "ethernet", "-connection", "ethernet");
        train(spark, dir, "infiniband", "-connection", "infiniband");
        train(spark, dir, "encrypted", "-connection", "infiniband", "-encrypt", "on");
      }
    }

    private static void train(SparkSession spark, Path dir, String name, String... flags) {
      List<String> line = new ArrayList<>(List.of(
          "-conf", dir.resolve("solver.prototxt").toString(), "-train", "-clusterSize", "2",
          "-trainData", uri(dir, "train.parquet"), "-model", uri(dir, name + ".model"),
          "-events", uri(dir, name)));
      line.addAll(List.of(flags));
      Submit.run(spark, line.toArray(new String[0]));
    }

    private static String uri(Path dir, String name) {
      return dir.resolve(name).toUri().toString();
    }

    /** A folder whose bin/java starts this JVM's java in a PID namespace. */
    private static Path splitJava(Path dir) throws IOException {
      Path java = Files.createDirectories(dir.resolve("java/bin")).resolve("java");
      String real = Path.of(System.getProperty("java.home"), "bin", "java").toString();
      // Both are process 1 there, and the JVM names its counters after that.
      Files.writeString(java, "#!/bin/sh\nexec " + String.join(" ", SPLIT) + " " + real
          + " -XX:-UsePerfData \"$@\"\n");
      Files.setPosixFilePermissions(java, PosixFilePermissions.fromString("rwx------"));
      return dir.resolve("java");
    }
  }
}
