// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.preflight;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import cafetiere.spark.CaffeEstimator;
import cafetiere.spark.DriverProcess;
import cafetiere.spark.PreflightException;
import cafetiere.spark.TestImages;
import cafetiere.spark.TestNets;
import cafetiere.spark.cluster.PortRange;
import cafetiere.spark.feed.FeedSchema;
import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;
import java.util.regex.Pattern;
import org.apache.spark.SparkConf;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.functions;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.function.Executable;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Set-up faults, injected, and the texts that answer them: those of src/test/resources/preflight,
 * where {@code <words in brackets>} stand for what varies. docs/preflight.md shows the same files.
 */
@Timeout(value = 180, unit = TimeUnit.SECONDS)
class PreflightFaultsTest {
  private static final Pattern PLACE = Pattern.compile("<([a-z]+)>");
  private static final Map<String, Long> MILLIS = new TreeMap<>();

  @TempDir static Path dir;

  private static SparkSession spark;
  private static Dataset<Row> points;
  private static final List<Process> drivers = new ArrayList<>();

  @BeforeAll
  static void start() throws IOException {
    // Two at a time: a session that starts leaves a core idle.
    drivers.add(driver("log-1", "cpus", "settings", "plug-in"));
    drivers.add(driver("log-2", "jar", "executors"));
    spark = TestImages.session();
    points = TestNets.points(spark, 50);
  }

  /** The time is told and not judged: it is that of this machine. */
  @AfterAll
  static void tellTimes() {
    drivers.forEach(Process::destroy);
    MILLIS.forEach((faults, millis) -> System.out.println(
        "preflight: " + faults + " answered in " + millis + " ms"));
  }

  @Test
  void tooFewSlots() {
    assertAnswer(() -> check(conf(), estimator().setNumWorkers(5), points), "too-few-slots");
  }

  /** The branches of resource managers, by their masters' names: tests/clusters has a YARN. */
  @ParameterizedTest
  @ValueSource(strings = {"yarn", "k8s://https://127.0.0.1:6443"})
  void tooFewExecutorsOfAResourceManager(String master) {
    SparkConf conf = conf().set("spark.master", master).set("spark.executor.cores", "1")
        .set("spark.executor.memory", "1g");
    assertAnswer(() -> check(conf, estimator().setNumWorkers(5), points), "too-few-executors");
    conf.set("spark.executor.memory", "512m").set("spark.executor.memoryOverhead", "1m")
        .set("spark.dynamicAllocation.enabled", "true");
    assertAnswer(() -> check(conf, estimator(), points), "overhead-too-small", "dynamic-allocation");
  }

  @Test
  void columnsAndWeights() {
    CaffeEstimator estimator = estimator().setFeaturesCol("feature")
        .setWeights("file:/nowhere/net.caffemodel");
    Dataset<Row> dated = points.withColumn("label", functions.current_date());
    assertAnswer(() -> estimator.fit(dated), "missing-weights", "missing-column", "wrong-type");
  }

  @Test
  void netAndFolder() {
    CaffeEstimator estimator = estimator().setNet("layer {\n  nmae: \"data\"\n}")
        .setCheckpointDir("file:/proc/nowhere");
    assertAnswer(() -> estimator.fit(points), "unreadable-net", "unwritable-folder");
  }

  @Test
  void aNetWithFileLayers() {
    String net = "layer { name: \"mnist\" type: \"%s\" top: \"data\" top: \"label\" }\n"
        + TestNets.CLASSIFIER.substring(TestNets.CLASSIFIER.indexOf("layer { name: \"hidden"));
    String windows = net.formatted("WindowData");
    assertAnswer(() -> estimator().setNet(windows).fit(points), "file-layers");
    String images = net.formatted("Data");
    assertAnswer(() -> estimator().setNet(images).fit(points), "file-layer-of-images");
  }

  @Test
  void rowsFolderAndPort() throws IOException {
    Dataset<Row> bad = points
        .withColumn("features", functions.expr(
            "if(id = 7, array(features[0], features[1], float('NaN')), features)"))
        .withColumn("label", functions.expr("if(id = 9, 2, label)"));
    try (ServerSocket taken = new ServerSocket(0, 1, InetAddress.getByName("127.0.0.1"))) {
      SparkConf conf = conf().set(PortRange.DRIVER, "" + taken.getLocalPort());
      CaffeEstimator estimator = estimator().setCheckpointDir("file:/proc/nowhere");
      assertAnswer(() -> check(conf, estimator, bad),
          "port-range-closed", "unwritable-folder", "label-out-of-range", "nan");
    }
  }

  @Test
  void vectorsAndNumbersThatAreInfinite() {
    FeedSchema schema = FeedSchema.of(
        points.schema(), List.of(new FeedSchema.Input("data", "features")), "");
    Dataset<Row> huge = points.withColumn("features", functions.expr("array(1D, 1e39D)"));
    assertEquals(1, NumberCheck.find(schemaOf(huge), huge, "").size());
    Dataset<Row> one = points.withColumn("features", functions.expr("double('-Infinity')"));
    assertEquals(List.of("column 'features' of row 0 holds -Infinity: correct it, or drop such rows"
        + " by .filter(\"abs(`features`) < 3e38\")"), NumberCheck.find(schemaOf(one), one, ""));
    assertEquals(List.of(), NumberCheck.find(schema, points, ""));
    Dataset<Row> vectors = points.withColumn("features", org.apache.spark.ml.functions
        .array_to_vector(functions.expr("array(1D, double('NaN'))")));
    assertEquals(List.of("column 'features' of row 0 holds NaN at element 1: correct it, or drop the"
        + " row"), NumberCheck.find(schemaOf(vectors), vectors, ""));
  }

  @Test
  void taskCpus() {
    assertDriver("cpus", "task-cpus");
  }

  @Test
  void settingsOfTheCluster() {
    assertDriver("settings", "overhead-too-small", "dynamic-allocation", "ssl-without-secret");
  }

  @Test
  void thePlugInIsMissingOnExecutors() {
    assertDriver("plug-in", "plug-in-jar-missing");
  }

  @Test
  void theJarIsMissingOnExecutors() {
    assertDriver("jar", "jar-missing");
  }

  /** Each executor has a fault of its own. */
  @Test
  void executorsThatCannotTrain() throws Exception {
    assumeTrue(new ProcessBuilder("unshare", "--mount", "--map-root-user", "true").start()
        .waitFor() == 0, "unshare --mount is not allowed here");
    assertDriver("executors", "noexec-tmp", "wrong-architecture", "node-local-checkpoints");
  }

  /** An executor's own call in a JVM on an emulated processor; a whole executor takes minutes. */
  @Test
  void anOldProcessor() throws Exception {
    Path qemu = Path.of("/usr/bin/qemu-x86_64-static");
    assumeTrue(Files.isExecutable(qemu) && System.getProperty("os.arch").equals("amd64"),
        "no emulator of older processors: install qemu-user-static");
    long start = System.nanoTime();
    Process java = new ProcessBuilder(qemu.toString(), "-cpu", "Nehalem",
        Path.of(System.getProperty("java.home"), "bin", "java").toString(), "-Xmx256m", "-cp",
        System.getProperty("java.class.path"), PreflightDriver.OldProcessor.class.getName())
        .redirectError(dir.resolve("qemu").toFile()).start();
    String fault = new String(java.getInputStream().readAllBytes(), StandardCharsets.UTF_8).strip();
    tell(start, "old-processor (all of an emulated JVM)");
    assertGolden(List.of("executor 0 on host cannot run the engine: " + fault), "old-processor");
  }

  @Test
  void thePageShowsTheseTexts() throws IOException {
    Path page = TestImages.examplePath("../docs/preflight.md");
    List<String> shown = new ArrayList<>();
    for (String line : Files.readAllLines(page)) {
      if (line.startsWith("    ")) shown.add(line.strip());
    }
    List<String> files = new ArrayList<>();
    try (var folder = Files.list(golden("nan").getParent())) {
      for (Path file : folder.toList()) files.add(Files.readString(file).strip());
    }
    assertEquals(String.join("\n", files.stream().sorted().toList()),
        String.join("\n", shown.stream().sorted().toList()));
  }

  private static FeedSchema schemaOf(Dataset<Row> table) {
    return FeedSchema.of(table.schema(), List.of(new FeedSchema.Input("data", "features")), "");
  }

  private static CaffeEstimator estimator() {
    return new CaffeEstimator().setSolver(TestNets.SOLVER).setNet(TestNets.CLASSIFIER)
        .setFeaturesCol("features").setLabelCol("label").setIdCol("id").setNumWorkers(2);
  }

  private static SparkConf conf() {
    // A machine that is busy needs longer than a user would wait.
    return spark.sparkContext().getConf().clone().set("spark.cafetiere.preflightRowsTime", "60s");
  }

  private static void check(SparkConf conf, CaffeEstimator estimator, Dataset<Row> rows) {
    Preflight.check(spark.sparkContext(), conf, TestNets.plan(estimator, rows), rows);
  }

  private static void assertAnswer(Executable fault, String... names) {
    long start = System.nanoTime();
    PreflightException e = assertThrows(PreflightException.class, fault);
    tell(start, String.join(", ", names));
    assertGolden(e.findings(), names);
  }

  private static Process driver(String log, String... sessions) throws IOException {
    List<String> args = new ArrayList<>(List.of(dir.toString()));
    args.addAll(List.of(sessions));
    return DriverProcess.start(
        PreflightDriver.class, dir.resolve(log), args.toArray(String[]::new));
  }

  /** What the drivers wrote, for an assertion's message. */
  private static String logs() {
    return DriverProcess.read(dir.resolve("log-1")) + DriverProcess.read(dir.resolve("log-2"));
  }

  private static void assertDriver(String session, String... names) {
    Path answer = dir.resolve(session);
    try {
      for (Process driver : drivers) driver.waitFor();
      List<String> lines = Files.readAllLines(answer);
      MILLIS.put(String.join(", ", names), Long.parseLong(lines.get(0)));
      if (lines.get(1).startsWith("nothing was found")) {
        throw new AssertionError(logs());
      }
      assertGolden(lines.subList(1, lines.size()), names);
    } catch (IOException | InterruptedException e) {
      throw new AssertionError(logs(), e);
    }
  }

  private static void tell(long start, String names) {
    MILLIS.put(names, TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - start));
  }

  private static void assertGolden(List<String> findings, String... names) {
    List<String> texts = Arrays.stream(names).map(PreflightFaultsTest::text).toList();
    String wanted = String.join("\n", texts);
    String pattern = Arrays.stream(PLACE.split(wanted, -1)).map(Pattern::quote)
        .reduce((a, b) -> a + "[^\\n]+?" + b).orElseThrow();
    String found = String.join("\n", findings);
    if (!found.matches(pattern)) assertEquals(wanted, found);
  }

  private static String text(String name) {
    try {
      return Files.readString(golden(name)).strip();
    } catch (IOException e) {
      return "no text: " + e;
    }
  }

  private static Path golden(String name) {
    return TestImages.examplePath("../jvm/spark/src/test/resources/preflight/" + name + ".txt");
  }
}
