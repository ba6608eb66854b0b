// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.preflight;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.SparkConf;

/**
 * What the rounds engine sends to the driver at once, against what Spark lets through and what the
 * driver's heap holds.
 *
 * @param outcomes results of one job
 * @param bytes of each of them
 */
public record RoundsRoom(int outcomes, long bytes) {
  private static final long MIB = 1 << 20;
  private static final int LARGEST_ARRAY = Integer.MAX_VALUE - (1 << 20);
  /** An outcome as it comes and its floats; the weights as such, as a broadcast and as a model. */
  private static final int COPIES_OF_OUTCOMES = 2;
  private static final int COPIES_OF_WEIGHTS = 3;

  /** Of {@code outcomes} at once, each of {@code floats} floats at least. */
  public static RoundsRoom of(int outcomes, long floats) {
    return new RoundsRoom(outcomes, Math.multiplyExact(floats, Float.BYTES));
  }

  /** What does not fit, and the setting that makes room; {@code heap}: bytes, at most. */
  List<String> findings(SparkConf conf, long heap) {
    List<String> findings = new ArrayList<>();
    if (bytes > LARGEST_ARRAY) {
      findings.add("engine rounds sends weights as bytes, of which there can be " + LARGEST_ARRAY
          + ", and these are " + bytes + ": set engine to barrier, where a model may have any size");
      return findings;
    }
    long atOnce = Preflight.mib(outcomes * bytes);
    String what = "a round sends " + outcomes + " times " + Preflight.mib(bytes)
        + " MiB to the driver at once";
    long limit = conf.getSizeAsMb("spark.driver.maxResultSize", "1g");
    if (limit > 0 && atOnce > limit) {
      findings.add(what + ", and spark.driver.maxResultSize is " + limit
          + " MiB: add --conf spark.driver.maxResultSize=" + atOnce * 5 / 4 + "m");
    }
    long needed = Preflight.mib((COPIES_OF_OUTCOMES * outcomes + COPIES_OF_WEIGHTS) * bytes);
    if (needed > heap / MIB) {
      findings.add(what + ", which needs about " + needed + " MiB of the driver's heap of "
          + heap / MIB + " MiB: add --driver-memory " + needed * 5 / 4 + "m");
    }
    return findings;
  }
}
