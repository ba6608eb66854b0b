// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.submit;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import cafetiere.spark.CaffeEstimator;
import cafetiere.spark.submit.Flags.UsageException;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.apache.spark.ml.param.Param;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class FlagsTest {
  @Test
  void readsAnOldCommandLine() {
    Flags flags = Flags.parse("-train", "-features", "accuracy,ip1", "-label", "label", "-conf",
        "lenet_solver.prototxt", "-clusterSize", "2", "-devices", "1", "-connection", "ethernet",
        "-model", "hdfs:///mnist.model", "-output", "hdfs:///features", "-persistent");
    assertTrue(flags.has("train") && flags.has("persistent"));
    assertFalse(flags.has("test"));
    assertEquals(List.of("accuracy", "ip1", "label"), flags.featureBlobs());
    assertEquals(2, flags.setParams(new CaffeEstimator()).getNumWorkers());
    assertEquals("json", flags.get("outputFormat", "json"));
  }

  @Test
  void aSwitchMayBeSpeltOut() {
    Flags flags = parse("-train", "True", "-test", "false", "-model", "m");
    assertTrue(flags.has("train"));
    assertFalse(flags.has("test"));
  }

  @Test
  void theWayOfWorkingTogetherIsAFlag() {
    Flags flags = parse("-train", "-model", "m", "-sync", "easgd", "-syncPeriod", "50",
        "-syncOptions", "moving_rate: 0.1", "-survivors");
    CaffeEstimator estimator = flags.setParams(new CaffeEstimator());
    assertEquals("easgd", estimator.getSyncMode());
    assertEquals(50, estimator.getSyncPeriod());
    assertEquals("moving_rate: 0.1", estimator.getSyncOptions());
    assertTrue(estimator.getSurvivors());
    assertEquals(6000, estimator.getPeerTimeout());
  }

  /** What the estimator can be told the command line can say, but for what it decides itself. */
  @Test
  void everyParamHasItsFlag() {
    Map<String, String> otherNames = Map.of("solver", "conf", "numWorkers", "clusterSize",
        "featuresCol", "dataCol", "outputCols", "features", "syncMode", "sync");
    for (Param<?> param : new CaffeEstimator().params()) {
      String flag = otherNames.getOrDefault(param.name(), param.name());
      if (flag.equals("predictionCol")) continue;  // -features and -test write no predictions
      String problem = message("-" + flag);
      assertFalse(problem.contains("is not a flag") || problem.contains("refused"), problem);
    }
  }

  @Test
  void anUnknownFlagNamesTheNearest() {
    assertMessage("-clusterSise is not a flag; did you mean -clusterSize? -help lists them all",
        "-clusterSise", "2");
    assertTrue(message("-modle", "x").contains("did you mean -model?"));
  }

  @Test
  void aTableAfterASwitchNamesItsFlag() {
    assertMessage("'t.parquet' belongs to no flag; -train takes no value, and -trainData names the table",
        "-conf", "s", "-train", "t.parquet");
    assertMessage("'t.parquet' belongs to no flag; --test takes no value, and -testData names the table",
        "-conf", "s", "--test", "t.parquet");
    assertMessage("'t.parquet' belongs to no flag; flags begin with '-'", "t.parquet");
  }

  @Test
  void whatIsOutOfScopeSaysSo() {
    assertTrue(message("-imageRoot", "x").contains("--class com.yahoo.ml.caffe.tools."));
  }

  @Test
  void saysWhatIsMissing() {
    assertMessage("nothing to do: give -train, -test or -features BLOB,...", "-model", "m");
    assertTrue(message("-train").startsWith("-model PATH is missing"));
    assertTrue(message("-train", "-model", "m", "-snapshot", "s").contains("add -weights PATH"));
    assertMessage("-model needs a value after it", "-train", "-model");
    assertTrue(message("-train", "-model", "m", "stray").startsWith("'stray' belongs to no flag"));
  }

  @Test
  void numbersAreChecked() {
    assertMessage("-clusterSize -1: numWorkers is -1: set it to 0 or more", "-train", "-model", "m",
        "-clusterSize", "-1");
    assertMessage("-epochs many: a whole number is needed", "-train", "-model", "m",
        "-epochs", "many");
    assertMessage("-epochs 3000000000: a whole number is needed, at most 2147483647", "-train",
        "-model", "m", "-epochs", "3000000000");
    assertMessage("-devices 0: a whole number of at least 1 is needed", "-train", "-model", "m",
        "-devices", "0");
    assertMessage("-connection infinband: connection is \"infinband\" (did you mean"
        + " \"infiniband\"?): set it to one of \"ethernet\", \"infiniband\"", "-train", "-model",
        "m", "-connection", "infinband");
  }

  @Test
  void aFlagIsNoValueOfAnother() {
    assertMessage("-model needs a value after it, and the flag -train follows", "-model", "-train");
  }

  @Test
  void devicesAndShardsSayTheSame() {
    assertMessage("both -shards and -devices are given: -devices N stands for N shards a worker, give"
        + " one of them only", "-train", "-model", "m", "-shards", "4", "-devices", "2");
  }

  @Test
  void wordsAreChecked() {
    String message = message("-train", "-model", "m", "-sync", "averge");
    String expected = "-sync averge: syncMode is \"averge\" (did you mean \"average\"?)";
    assertTrue(message.startsWith(expected), message);
  }

  @Test
  void aFileBesideTheDriverIsLocal(@TempDir Path dir) throws IOException {
    Path file = Files.writeString(dir.resolve("lenet.caffemodel"), "");
    Flags flags = parse("-train", "-model", "m", "-weights", file.toString(), "-snapshot",
        "hdfs:///lenet.solverstate");
    CaffeEstimator estimator = flags.setParams(new CaffeEstimator());
    assertEquals("file:" + file, estimator.getWeights());
    assertEquals("hdfs:///lenet.solverstate", estimator.getSnapshot());
    Flags several = parse("-train", "-model", "m", "-weights", file + ",hdfs:///b.caffemodel");
    assertEquals("file:" + file + ",hdfs:///b.caffemodel",
        several.setParams(new CaffeEstimator()).getWeights());
  }

  @Test
  void helpTellsEveryFlag() {
    assertTrue(Flags.parse("-help").has("help"));
    String help = Flags.help();
    assertTrue(help.contains("\n  -clusterSize N          Tasks that train together."), help);
    assertTrue(help.contains("\n  -resize                 Resize encoded images"), help);
    assertTrue(help.contains("\n  -sync WORD              How the ranks work together"), help);
    assertTrue(help.contains("\n  -weights FILE           Path of a caffemodel"), help);
    assertTrue(help.lines().allMatch(line -> line.length() <= 100), help);
  }

  private static Flags parse(String... args) {
    String[] all = new String[args.length + 2];
    all[0] = "-conf";
    all[1] = "solver.prototxt";
    System.arraycopy(args, 0, all, 2, args.length);
    return Flags.parse(all);
  }

  private static String message(String... args) {
    return assertThrows(UsageException.class, () -> parse(args)).getMessage();
  }

  private static void assertMessage(String expected, String... args) {
    assertEquals(expected, message(args));
  }
}
