// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark;

import cafetiere.spark.events.PluginRoute;
import cafetiere.spark.util.JavaVersion;
import java.util.Map;
import org.apache.spark.SparkContext;
import org.apache.spark.api.plugin.DriverPlugin;
import org.apache.spark.api.plugin.ExecutorPlugin;
import org.apache.spark.api.plugin.PluginContext;
import org.apache.spark.api.plugin.SparkPlugin;

/**
 * Carries a run's events to the driver over Spark's own connection, so that no further port is
 * needed. Optional: {@code --conf spark.plugins=cafetiere.spark.CafetierePlugin}.
 */
public final class CafetierePlugin implements SparkPlugin {
  @Override
  public DriverPlugin driverPlugin() {
    JavaVersion.require();
    return new DriverPlugin() {
      @Override
      public Map<String, String> init(SparkContext sc, PluginContext context) {
        return Map.of();
      }

      @Override
      public Object receive(Object message) {
        PluginRoute.receive(message);
        return null;
      }
    };
  }

  @Override
  public ExecutorPlugin executorPlugin() {
    JavaVersion.require();
    return new ExecutorPlugin() {
      @Override
      public void init(PluginContext context, Map<String, String> extraConf) {
        PluginRoute.open(context);
      }

      @Override
      public void shutdown() {
        PluginRoute.open(null);
      }
    };
  }
}
