// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.internal;

import java.lang.reflect.Method;

/**
 * Whether a model is being saved to, or loaded from, the driver's own disk, as a server of Spark Connect
 * does with every model that it fits. Spark 4.1 has that, and keeps it to itself; others have it not.
 */
public final class LocalSaving {
  private static final String CLASS = "org.apache.spark.ml.util.ReadWriteUtils$";

  private LocalSaving() {}

  /** Whether this thread does so. */
  public static boolean isOn() {
    try {
      Class<?> utils = Class.forName(CLASS);
      Method state = utils.getMethod("localSavingModeState");
      Object on = ((ThreadLocal<?>) state.invoke(utils.getField("MODULE$").get(null))).get();
      return Boolean.TRUE.equals(on);
    } catch (ReflectiveOperationException e) {
      return false;
    }
  }

  /** A path for Hadoop's file systems, of which the default need not be the local one. */
  public static String path(String path) {
    return isOn() ? "file://" + path : path;
  }
}
