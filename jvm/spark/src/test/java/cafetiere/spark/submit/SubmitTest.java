// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.submit;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import cafetiere.core.Engine;
import cafetiere.spark.BothLines;
import cafetiere.spark.DriverProcess;
import cafetiere.spark.LongRun;
import cafetiere.spark.PreflightException;
import cafetiere.spark.Submit;
import cafetiere.spark.TestImages;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerJobStart;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** CaffeOnSpark's command line, from the table to the features. */
@Timeout(value = 180, unit = TimeUnit.SECONDS)
class SubmitTest {
  private static final int TRAIN_ROWS = 1_000;
  private static final int TEST_ROWS = 103;
  private static final int STEPS = 60;
  private static final String DUMMY = "layer { name: 'data' type: 'DummyData' top: 'data' top: 'label'"
      + " dummy_data_param { shape { dim: 32 dim: 1 dim: 28 dim: 28 } shape { dim: 32 } } }\n";

  @TempDir static Path dir;
  private static SparkSession spark;

  @BeforeAll
  static void writeTablesAndNet() throws IOException {
    spark = TestImages.session();
    TestImages.images(spark, TRAIN_ROWS).write().parquet(uri("train.parquet"));
    TestImages.images(spark, TEST_ROWS).write().parquet(uri("test.parquet"));
    Files.writeString(dir.resolve("lenet.prototxt"), TestImages.lenet());
    Files.writeString(dir.resolve("solver.prototxt"),
        TestImages.solver(STEPS) + " net: \"lenet.prototxt\"");
    train();
  }

  @ParameterizedTest
  @CsvSource({"barrier,BINARYPROTO", "rounds,HDF5"})
  void snapshotsInMidRunLieBesideTheModel(String engine, String format) throws Exception {
    snapshotsInMidRun(engine, format);
  }

  @LongRun
  @ParameterizedTest
  @CsvSource({"barrier,HDF5", "rounds,BINARYPROTO"})
  void soTheyDoInTheOtherFormat(String engine, String format) throws Exception {
    snapshotsInMidRun(engine, format);
  }

  /** Checkpoints have an interval of their own. */
  private static void snapshotsInMidRun(String engine, String format) throws Exception {
    Path folder = Files.createDirectories(dir.resolve(engine + format));
    String ending = format.equals("HDF5") ? ".h5" : "";
    Path solver = folder.resolve("solver.prototxt");
    Files.writeString(solver, TestImages.solver(20).replace("lenet", "here/often")
        + " net: \"" + dir.resolve("lenet.prototxt") + "\" snapshot: 6 snapshot_format: " + format);
    String[] flags = {"-conf", solver.toString(), "-train", "-trainData", uri("train.parquet"),
        "-clusterSize", "2", "-engine", engine, "-sync", "average", "-syncPeriod", "2",
        "-checkpointInterval", "4", "-model", folder.resolve("the.model").toUri().toString()};
    Submit.run(spark, flags);
    assertEquals(Stream.of(6, 12, 18, 20).flatMap(step -> Stream.of(
        "often_iter_" + step + ".caffemodel" + ending, "often_iter_" + step + ".solverstate" + ending))
        .sorted().toList(), names(folder, "often_"));
    byte[] whole = Files.readAllBytes(folder.resolve("the.model"));
    byte[] inMidRun = Files.readAllBytes(folder.resolve("often_iter_12.caffemodel" + ending));

    Path own = Files.createDirectory(folder.resolve("own"));
    for (String part : List.of(".caffemodel", ".solverstate")) {
      String name = "often_iter_12" + part + ending;
      Files.copy(folder.resolve(name), own.resolve(name));
    }
    byte[] restored = restored(own, "often_iter_12.solverstate" + ending, format);
    if (format.equals("HDF5")) {
      assertArrayEquals(inMidRun, restored);
    } else {  // which hold the net, too, and there it is another one
      assertArrayEquals(Engine.weightsHdf5(inMidRun), Engine.weightsHdf5(restored));
    }

    String[] more = Stream.concat(Stream.of(flags), Stream.of(
        "-weights", own.resolve("often_iter_12.caffemodel" + ending).toString(),
        "-snapshot", own.resolve("often_iter_12.solverstate" + ending).toString()))
        .toArray(String[]::new);
    Submit.run(spark, more);
    assertArrayEquals(whole, Files.readAllBytes(folder.resolve("the.model")));
  }

  /** What the command line writes when it takes a snapshot up and has nothing more to do. */
  private static byte[] restored(Path folder, String state, String format) throws Exception {
    String net = TestImages.lenet().replaceFirst(
        "(?s)layer \\{\\s*name: \"data\".*?\\n\\}\\n", DUMMY);
    Path solver = folder.resolve("solver.prototxt");
    Files.writeString(folder.resolve("net.prototxt"), net);
    Files.writeString(solver, TestImages.solver(12).replace("lenet", folder + "/again")
        + " net: \"" + folder.resolve("net.prototxt") + "\" snapshot_format: " + format);
    Path program = TestImages.examplePath("../build/release/cli/cafetiere");
    Process process = new ProcessBuilder(program.toString(), "train", "--solver=" + solver,
        "--snapshot=" + folder.resolve(state)).redirectErrorStream(true).start();
    String output = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
    assertEquals(0, process.waitFor(), output);
    String ending = format.equals("HDF5") ? ".h5" : "";
    return Files.readAllBytes(folder.resolve("again_iter_12.caffemodel" + ending));
  }

  private static List<String> names(Path folder, String prefix) throws IOException {
    try (Stream<Path> files = Files.list(folder)) {
      return files.map(file -> file.getFileName().toString())
          .filter(name -> name.startsWith(prefix)).sorted().toList();
    }
  }

  @Test
  void aLargeModelIsWrittenAndReadAsAFile() throws IOException {
    Path solver = dir.resolve("large.prototxt");
    Files.writeString(solver, TestImages.solver(STEPS).replace("lenet", "large")
        + " net: \"" + dir.resolve("lenet.prototxt") + "\"");
    Path checkpoints = dir.resolve("large-checkpoints");
    spark.conf().set("spark.cafetiere.largestModel", "1k");
    try {
      Submit.run(spark, "-conf", solver.toString(), "-train", "-trainData", uri("train.parquet"),
          "-clusterSize", "2", "-checkpointDir", checkpoints.toUri().toString(),
          "-model", uri("large.model"));
      Submit.run(spark, "-conf", solver.toString(), "-test", "-testData", uri("test.parquet"),
          "-model", uri("large.model"), "-output", uri("large.txt"));
    } finally {
      spark.conf().unset("spark.cafetiere.largestModel");
    }
    submit("-test", "-testData", uri("test.parquet"), "-output", uri("small.txt"));
    assertEquals(Files.readString(dir.resolve("small.txt")),
        Files.readString(dir.resolve("large.txt")));
    String prefix = "large_iter_" + STEPS;
    assertEquals(List.of(prefix + ".caffemodel.h5", prefix + ".solverstate.h5"),
        names(dir, "large_"));
    assertEquals(List.of(), names(checkpoints, "model-"));
  }

  private static void train() {
    submit("-train", "-trainData", uri("train.parquet"), "-clusterSize", "2", "-persistent",
        "-connection", "ethernet", "-devices", "1", "-events", uri("events"));
  }

  @Test
  void trainLeavesTheModelAndTheSnapshotBesideIt() throws IOException {
    byte[] model = Files.readAllBytes(dir.resolve("lenet.model"));
    Path snapshot = dir.resolve("lenet_iter_" + STEPS + ".caffemodel");
    assertArrayEquals(model, Files.readAllBytes(snapshot));
    assertTrue(Files.size(dir.resolve("lenet_iter_" + STEPS + ".solverstate")) > 0);
    assertTrue(Files.readString(dir.resolve("events.jsonl")).contains("\"progress\""));
  }

  @BothLines
  @Test
  void featuresWritesEveryRowWithItsId() {
    submit("-features", "ip1", "-label", "label", "-testData", uri("test.parquet"),
        "-output", uri("features"), "-outputFormat", "parquet");
    Dataset<Row> features = spark.read().parquet(uri("features"));
    assertEquals(List.of("SampleID", "ip1", "label"), List.of(features.columns()));
    List<Row> rows = features.orderBy(features.col("SampleID").cast("long")).collectAsList();
    assertEquals(TEST_ROWS, rows.size());
    for (int id = 0; id < TEST_ROWS; id++) {
      assertEquals(Integer.toString(id), rows.get(id).getString(0));
      assertEquals(500, rows.get(id).getList(1).size());
      assertEquals((float) TestImages.label(id), rows.get(id).<Float>getList(2).get(0));
    }
  }

  @BothLines
  @Test
  void testWritesALineForEveryOutput() throws IOException {
    submit("-test", "-testData", uri("test.parquet"), "-output", uri("result.txt"));
    List<String> lines = Files.readAllLines(dir.resolve("result.txt"));
    assertEquals(2, lines.size());
    assertTrue(lines.get(0).matches("accuracy: (1|0)\\.\\d+"), lines.get(0));
    assertTrue(lines.get(1).matches("loss: \\d+\\.\\d+.*"), lines.get(1));
    double accuracy = Double.parseDouble(lines.get(0).substring("accuracy: ".length()));
    assertTrue(accuracy > 0.9, lines.get(0));
  }

  @Test
  void testLeavesABadFirstRowOut() throws IOException {
    Dataset<Row> images = TestImages.images(spark, 40).coalesce(1);
    images.filter("id > 0").write().parquet(uri("good.parquet"));
    images.selectExpr("id", "if(id = 0, X'010203', image) image", "label").write()
        .parquet(uri("bad.parquet"));
    for (String table : List.of("good", "bad")) {
      submit("-test", "-skipBadRows", "-testData", uri(table + ".parquet"), "-output", uri(table + ".txt"));
    }
    List<String> good = Files.readAllLines(dir.resolve("good.txt"));
    List<String> bad = Files.readAllLines(dir.resolve("bad.txt"));
    assertEquals(good.size(), bad.size());
    for (int i = 0; i < good.size(); i++) {  // the rows stand in other batches
      String name = good.get(i).split(" ")[0];
      assertEquals(name, bad.get(i).split(" ")[0]);
      assertEquals(Double.parseDouble(good.get(i).substring(name.length())),
          Double.parseDouble(bad.get(i).substring(name.length())), 1e-6);
    }
  }

  @Test
  void errorsNameTheTablesOwnColumns() {
    TestImages.images(spark, 4).selectExpr("id", "image", "cast(null as int) label").coalesce(1)
        .write().parquet(uri("unlabelled.parquet"));
    for (String task : List.of("-test", "-features")) {
      String[] flags = {task, "-testData", uri("unlabelled.parquet"), "-output", uri("unlabelled.txt")};
      List<String> all = new ArrayList<>(List.of(flags));
      if (task.equals("-features")) all.add(1, "ip2,label");
      Throwable last = assertThrows(Exception.class, () -> submit(all.toArray(new String[0])));
      while (last.getCause() != null) last = last.getCause();
      String column = task.equals("-test") ? "label" : "label of the table"; // a blob has its name
      assertTrue(last.getMessage().contains(
          "column '" + column + "' of row 0 of this partition is null"), last.getMessage());
    }
  }

  /** Rows count alike, also those of a batch that is not full. */
  @Test
  void theMeanOfEachRowsAccuracyIsWhatTestWrites() throws IOException {
    String data = uri("test.parquet");
    submit("-features", "accuracy", "-testData", data, "-output", uri("accuracies"),
        "-outputFormat", "parquet");
    submit("-test", "-testData", data, "-output", uri("mean.txt"));
    Row mean = spark.read().parquet(uri("accuracies")).selectExpr("avg(accuracy[0])", "count(*)")
        .first();
    assertEquals(TEST_ROWS, mean.getLong(1));
    assertTrue(TEST_ROWS % 32 != 0);
    String told = Files.readAllLines(dir.resolve("mean.txt")).get(0);
    assertEquals(Double.parseDouble(told.substring("accuracy: ".length())), mean.getDouble(0), 1e-6);
  }

  @Test
  void testTakesAsManyJobsForManyOutputs() throws IOException {
    String prob = "layer { name: 'prob' type: 'Softmax' bottom: 'ip2' top: 'prob' }\n";
    Files.writeString(dir.resolve("prob.prototxt"), TestImages.lenet() + prob);
    List<String> counted = new CopyOnWriteArrayList<>();
    SparkListener counter = new SparkListener() {
      @Override
      public void onJobStart(SparkListenerJobStart start) {
        counted.add("job " + start.jobId());
      }
    };
    spark.sparkContext().addSparkListener(counter);
    submit("-test", "-net", dir.resolve("prob.prototxt").toString(),
        "-testData", uri("test.parquet"), "-output", uri("prob.txt"));
    spark.sparkContext().removeSparkListener(counter);
    String line = Files.readAllLines(dir.resolve("prob.txt")).stream()
        .filter(l -> l.startsWith("prob: ")).findFirst().orElseThrow();
    double sum = Stream.of(line.substring("prob: ".length()).split(","))
        .mapToDouble(Double::parseDouble).sum();
    assertEquals(1, sum, 1e-5, line);
    assertTrue(counted.size() < TestImages.CLASSES, counted.toString());
  }

  @Test
  void aTableOrAModelThatIsNotThereIsToldInASentence() throws Exception {
    Process table = refused("-train", "-trainData", uri("nowhere.parquet"));
    Process model = refused("-test", "-testData", uri("test.parquet"));
    assertRefusal(table, "-train", "[PATH_NOT_FOUND]");
    assertRefusal(model, "-test", "cannot read " + uri("never.model"));
  }

  @Test
  void whatFailsInATaskOrHasANameOfSparksIsToldInASentenceToo() throws Exception {
    Path text = Files.writeString(dir.resolve("notes.txt"), "neither a table nor weights");
    Process unreachable = refused("-train", "-trainData", "hdfs://127.0.0.1:9/x");
    Process format = submitted("format", "-features", "prob", "-outputFormat", "nosuch", "-model",
        uri("never.model"));
    assertRefusal(unreachable, "-train", "Call From ");
    assertRefusal(format, "format", "[DATA_SOURCE_NOT_FOUND]");
    Process table = submitted("table", "-train", "-trainData", text.toUri().toString(), "-model",
        uri("never.model"));
    Process model = submitted("model", "-test", "-testData", uri("test.parquet"), "-model",
        text.toUri().toString());
    assertRefusal(table, "table", "[FAILED_READ_FILE");
    assertRefusal(model, "model", text.toUri() + ": is not a caffemodel");
  }

  private static Process refused(String task, String flag, String table) throws IOException {
    return submitted(task, task, flag, table, "-model", uri("never.model"));
  }

  private static Process submitted(String log, String... flags) throws IOException {
    String[] solver = {"-conf", dir.resolve("solver.prototxt").toString()};
    return DriverProcess.start(LocalSubmit.class, dir.resolve("refused" + log + ".log"),
        Stream.of(solver, flags).flatMap(Stream::of).toArray(String[]::new));
  }

  /** Submit ends with 1 and a sentence that begins so, and with no stack trace. */
  private static void assertRefusal(Process process, String task, String sentence)
      throws InterruptedException {
    assertEquals(1, process.waitFor());
    String output = DriverProcess.read(dir.resolve("refused" + task + ".log"));
    assertTrue(output.contains("cafetiere: " + sentence), output);
    assertFalse(output.contains("Exception in thread"), output);
  }

  /** Submit with a local master. */
  static final class LocalSubmit {
    private LocalSubmit() {}

    public static void main(String[] args) {
      System.setProperty("spark.master", "local[1]");
      Submit.main(args);
    }
  }

  @Test
  void goesOnFromASnapshot() throws IOException {
    Path longer = dir.resolve("longer.prototxt");
    Files.writeString(longer, TestImages.solver(STEPS + 20) + " net: \"lenet.prototxt\"");
    Path folder = Files.createDirectory(dir.resolve("100% of #1")); // which a URI would escape
    for (String part : List.of(".caffemodel", ".solverstate")) {
      Files.copy(dir.resolve("lenet_iter_" + STEPS + part), folder.resolve("lenet" + part));
    }
    Submit.run(spark, "-conf", longer.toString(), "-train", "-trainData", uri("train.parquet"),
        "-clusterSize", "2", "-model", uri("longer.model"), "-checkpointDir", folder.toString(),
        "-weights", folder.resolve("lenet.caffemodel").toString(),
        "-snapshot", folder.resolve("lenet.solverstate").toString());
    assertTrue(Files.exists(dir.resolve("lenet_iter_" + (STEPS + 20) + ".solverstate")));
  }

  @Test
  void snapshotsAreHdf5WhereTheSolverWantsThat() throws IOException {
    Path hdf5 = dir.resolve("hdf5.prototxt");
    String solver = TestImages.solver(STEPS + 5).replace("lenet", "hdf5");
    Files.writeString(hdf5, solver + " net: \"lenet.prototxt\" snapshot_format: HDF5");
    String prefix = "hdf5_iter_" + (STEPS + 5);
    Submit.run(spark, "-conf", hdf5.toString(), "-train", "-trainData", uri("train.parquet"),
        "-clusterSize", "2", "-model", uri("hdf5.model.h5"),
        "-weights", dir.resolve("lenet_iter_" + STEPS + ".caffemodel").toString(),
        "-snapshot", dir.resolve("lenet_iter_" + STEPS + ".solverstate").toString());
    for (String name : List.of("hdf5.model.h5", prefix + ".caffemodel.h5",
        prefix + ".solverstate.h5")) {
      byte[] file = Files.readAllBytes(dir.resolve(name));
      assertEquals("HDF", new String(file, 1, 3, StandardCharsets.US_ASCII), name);
    }
    assertFalse(Files.exists(dir.resolve(prefix + ".caffemodel")));
    Files.writeString(hdf5, solver.replace("" + (STEPS + 5), "" + (STEPS + 7))
        + " net: \"lenet.prototxt\"");
    Submit.run(spark, "-conf", hdf5.toString(), "-train", "-trainData", uri("train.parquet"),
        "-clusterSize", "2", "-model", uri("hdf5.model"),
        "-weights", dir.resolve(prefix + ".caffemodel.h5").toString(),
        "-snapshot", dir.resolve(prefix + ".solverstate.h5").toString());
    assertTrue(Files.exists(dir.resolve("hdf5_iter_" + (STEPS + 7) + ".solverstate")));
    Submit.run(spark, "-conf", hdf5.toString(), "-test", "-testData", uri("test.parquet"),
        "-model", uri("hdf5.model.h5"), "-output", uri("hdf5.txt"));
    assertEquals(2, Files.readAllLines(dir.resolve("hdf5.txt")).size());
  }

  @Test
  void aTableIsAskedForWhereTheNetNamesNone() {
    String message = assertThrows(Flags.UsageException.class, () -> submit("-train")).getMessage();
    assertEquals("the data layer names no source: pass the table with -trainData PATH", message);
  }

  @Test
  void aModelThatCannotBeWrittenIsToldBeforeTheTraining() {
    String solver = dir.resolve("solver.prototxt").toString();
    for (String model : List.of(dir.toString(), "/proc/none/lenet.model")) {
      String told = assertThrows(UncheckedIOException.class, () -> Submit.run(spark, "-conf", solver,
          "-train", "-trainData", uri("none.parquet"), "-model", model)).getMessage();
      assertTrue(told.startsWith("cannot write " + model + ": "), told);
    }
  }

  @Test
  void aFeatureThatIsNoBlobIsTold() {
    String told = assertThrows(PreflightException.class, () -> submit("-features", "ip3",
        "-testData", uri("test.parquet"), "-output", uri("none"))).getMessage();
    assertTrue(told.startsWith("-features names 'ip3', which is no blob of the net: did you mean 'ip"),
        told);
  }

  @Test
  void aWrongFlagEndsTheProgramWithCodeTwo() throws Exception {
    program(2, "cafetiere: -trian is not a flag; did you mean -train?", "-conf", "s", "-trian");
  }

  @Test
  void helpEndsTheProgramWithCodeZero() throws Exception {
    program(0, "usage: -conf FILE -model PATH", "-help");
  }

  /** Submit in a JVM of its own, which ends with this code and says this. */
  private static void program(int code, String text, String... flags) throws Exception {
    List<String> command = new ArrayList<>(List.of(
        Path.of(System.getProperty("java.home"), "bin", "java").toString(), "-cp",
        System.getProperty("java.class.path"), "cafetiere.spark.Submit"));
    command.addAll(List.of(flags));
    Process process = new ProcessBuilder(command).redirectErrorStream(true).start();
    String output = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
    assertTrue(output.contains(text), output);
    assertEquals(code, process.waitFor());
  }

  private static void submit(String... flags) {
    String[] all = new String[flags.length + 4];
    all[0] = "-conf";
    all[1] = dir.resolve("solver.prototxt").toString();
    all[2] = "-model";
    all[3] = uri("lenet.model");
    System.arraycopy(flags, 0, all, 4, flags.length);
    Submit.run(spark, all);
  }

  private static String uri(String name) {
    return dir.resolve(name).toUri().toString();
  }
}
