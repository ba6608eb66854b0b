// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.submit;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import cafetiere.spark.DriverProcess;
import cafetiere.spark.Submit;
import cafetiere.spark.TestImages;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
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
    assertTrue(events("ethernet", "tcp,self").stream().noneMatch(ConnectionTest::tells));
    List<String> used = told("infiniband", "tcp,self");
    assertTrue(used.get(0).matches(".*: connection infiniband: UCX 1[.].* is used between hosts.*"),
        used::toString);
    List<String> refused = told("infiniband", "none");
    assertTrue(refused.get(0).contains(": connection infiniband: TCP is used between hosts: rank 0"),
        refused::toString);
    byte[] model = model("ethernet", "tcp,self");
    assertArrayEquals(model, model("infiniband", "tcp,self"));
    assertArrayEquals(model, model("infiniband", "none"));
  }

  private static boolean run(String... command) throws IOException, InterruptedException {
    return new ProcessBuilder(command).start().waitFor() == 0;
  }

  private static boolean tells(String event) {
    return event.contains("connection infiniband");
  }

  /** The one event of a training that tells what connects its ranks. */
  private List<String> told(String connection, String transports) throws Exception {
    List<String> told =
        events(connection, transports).stream().filter(ConnectionTest::tells).toList();
    assertEquals(1, told.size(), told::toString);
    return told;
  }

  /** Trains in a driver of its own; returns the events. */
  private List<String> events(String connection, String transports) throws Exception {
    Path folder = Files.createDirectories(folder(connection, transports));
    Path log = folder.resolve("log");
    Process driver =
        DriverProcess.start(Driver.class, log, folder.toString(), connection, transports);
    assertEquals(0, driver.waitFor(), () -> DriverProcess.read(log));
    return Files.readAllLines(folder.resolve("events.jsonl"));
  }

  private byte[] model(String connection, String transports) throws IOException {
    return Files.readAllBytes(folder(connection, transports).resolve("lenet.model"));
  }

  private Path folder(String connection, String transports) {
    return dir.resolve(connection + "-" + transports);
  }

  /** Trains by executors that are processes of hosts of their own, as far as they can see. */
  static final class Driver {
    private Driver() {}

    public static void main(String[] args) throws Exception {
      Path dir = Path.of(args[0]);
      Files.writeString(dir.resolve("lenet.prototxt"), TestImages.lenet());
      Path solver = dir.resolve("solver.prototxt");
      Files.writeString(solver, TestImages.solver(STEPS) + " net: \"lenet.prototxt\"");
      try (SparkSession spark = SparkSession.builder().appName("connection")
          .master("local-cluster[2,1,512]").config("spark.executor.memory", "512m")
          .config("spark.executorEnv.JAVA_HOME", splitJava(dir).toString())
          .config("spark.executorEnv.UCX_TLS", args[2]).getOrCreate()) {
        String table = dir.resolve("train.parquet").toUri().toString();
        TestImages.images(spark, ROWS).write().parquet(table);
        Submit.run(spark, "-conf", solver.toString(), "-train", "-trainData", table,
            "-clusterSize", "2", "-connection", args[1],
            "-model", dir.resolve("lenet.model").toUri().toString(),
            "-events", dir.resolve("events.jsonl").toUri().toString());
      }
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
