// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark;

import java.util.List;
import org.apache.spark.SparkConf;

/** Whether what travels between the ranks is encrypted, as the param encrypt says. */
final class Encryption {
  static final List<String> CHOICES = List.of("auto", "on", "off");

  private static final List<String> SPARKS_OWN = List.of(
      "spark.network.crypto.enabled", "spark.ssl.rpc.enabled", "spark.ssl.enabled");

  private Encryption() {}

  /** One of {@link #CHOICES} in the session of {@code conf}. */
  static boolean of(String choice, SparkConf conf) {
    if (!choice.equals("auto")) return choice.equals("on");
    return SPARKS_OWN.stream().anyMatch(key -> conf.getBoolean(key, false));
  }
}
