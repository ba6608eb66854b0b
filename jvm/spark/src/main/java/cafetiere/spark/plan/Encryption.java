// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.plan;

import java.util.List;
import java.util.Optional;
import org.apache.spark.SparkConf;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Whether what travels between the ranks is encrypted, as the param encrypt says. */
public final class Encryption {
  private static final List<String> SPARKS_OWN = List.of(
      "spark.network.crypto.enabled", "spark.ssl.rpc.enabled", "spark.ssl.enabled");

  private static final Logger LOG = LoggerFactory.getLogger(Encryption.class);

  private Encryption() {}

  /** A value of the param encrypt, in the session of {@code conf}. */
  public static boolean of(String choice, SparkConf conf) {
    warning(choice, conf).ifPresent(LOG::warn);
    if (!choice.equals("auto")) return choice.equals("on");
    return ofSpark(conf);
  }

  /** What encryption is worth where the keys travel in the clear; empty where they do not. */
  static Optional<String> warning(String choice, SparkConf conf) {
    boolean oneHost = conf.get("spark.master", "").startsWith("local");
    if (!choice.equals("on") || oneHost || ofSpark(conf)) return Optional.empty();
    return Optional.of("encrypt is on, and Spark sends the secret of the ranks to its executors in the"
        + " clear: who reads all of the network can read what the ranks say. Add --conf"
        + " spark.authenticate=true --conf spark.network.crypto.enabled=true");
  }

  /**
   * What keeps encryption from being worth anything: Spark's own SSL without authentication lets
   * everybody who reaches the driver in as an executor, to whom the secret of the ranks is sent.
   */
  public static Optional<String> finding(boolean encrypt, boolean oneProcess, SparkConf conf) {
    boolean ssl = conf.getBoolean("spark.ssl.enabled", false)
        || conf.getBoolean("spark.ssl.rpc.enabled", false);
    if (!encrypt || oneProcess || !ssl || conf.getBoolean("spark.authenticate", false)) {
      return Optional.empty();
    }
    return Optional.of("spark.ssl is on without a secret that executors have to know, so that whoever"
        + " reaches the driver is sent what encrypts the training: add --conf spark.authenticate=true"
        + " --conf spark.authenticate.secret=SECRET (not on YARN, which makes one) --conf"
        + " spark.network.crypto.enabled=true, or set encrypt to off");
  }

  /** Whether Spark encrypts what it sends. */
  public static boolean ofSpark(SparkConf conf) {
    return SPARKS_OWN.stream().anyMatch(key -> conf.getBoolean(key, false));
  }
}
