// SPDX-License-Identifier: Apache-2.0
import cafetiere.spark.CaffeEstimator;
import cafetiere.spark.CaffeModel;
import cafetiere.spark.Submit;
import cafetiere.spark.ml.CaffeClassifier;
import cafetiere.spark.ml.CaffeRegressionModel;
import org.apache.spark.sql.SparkSession;

/** Comes in by every class that users name; prints what each of them throws, a line each. */
public final class OldJava {
  private interface Entry {
    void enter() throws Throwable;
  }

  /** Entry point. */
  public static void main(String[] args) {
    tell("CaffeEstimator", CaffeEstimator::new);
    tell("CaffeModel", () -> CaffeModel.load("nowhere"));
    tell("CaffeClassifier", CaffeClassifier::new);
    tell("CaffeRegressionModel", () -> CaffeRegressionModel.load("nowhere"));
    tell("Submit", () -> Submit.main(new String[0]));
    tell("CafetierePlugin", () -> SparkSession.builder().master("local[1]")
        .config("spark.ui.enabled", "false").config("spark.driver.host", "127.0.0.1")
        .config("spark.plugins", "cafetiere.spark.CafetierePlugin").getOrCreate());
    // Spark looks at every data source there is, whichever it is asked for.
    tell("LmdbSource", () -> {
      SparkSession spark = SparkSession.builder().master("local[1]")
          .config("spark.ui.enabled", "false").config("spark.driver.host", "127.0.0.1")
          .getOrCreate();
      spark.read().format("text").load(".");
      spark.read().format("lmdb").load("nowhere");
    });
  }

  private static void tell(String name, Entry entry) {
    try {
      entry.enter();
      System.out.println(name + " entered");
    } catch (Throwable e) { // errors too: those of the JVM are what this is about
      System.out.println(name + " " + e);
    }
  }
}
