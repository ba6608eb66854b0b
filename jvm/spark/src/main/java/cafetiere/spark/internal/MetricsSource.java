// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.internal;

import com.codahale.metrics.MetricRegistry;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.spark.SparkEnv;
import org.apache.spark.metrics.MetricsSystem;
import org.apache.spark.metrics.source.Source;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Numbers of ours in Spark's metrics system, which every sink of it shows: Prometheus, JMX, CSV files. It
 * is there from its first use on, for as long as the application.
 */
public final class MetricsSource implements Source {
  private static final Logger LOG = LoggerFactory.getLogger(MetricsSource.class);
  private static final String NAME = "cafetiere";

  private final MetricRegistry registry = new MetricRegistry();
  private final Map<String, Double> values = new ConcurrentHashMap<>();

  private MetricsSource() {}

  /** That of the application; one that nobody shows where Spark has no place for it. */
  public static synchronized MetricsSource ofApplication() {
    SparkEnv env = SparkEnv.get();
    if (env == null) {
      throw new IllegalStateException("the SparkContext was stopped before the training began");
    }
    MetricsSystem system = env.metricsSystem();
    try {
      // The collection that it returns is of another class in each version of Scala.
      Object found = MetricsSystem.class.getMethod("getSourcesByName", String.class)
          .invoke(system, NAME);
      scala.collection.Iterator<?> sources = ((scala.collection.Iterable<?>) found).iterator();
      while (sources.hasNext()) {
        if (sources.next() instanceof MetricsSource ours) return ours;
      }
      MetricsSource made = new MetricsSource();
      system.registerSource(made);
      return made;
    } catch (ReflectiveOperationException e) {
      LOG.warn("Spark's metrics system shows nothing of trainings: {}", e.toString());
      return new MetricsSource();
    }
  }

  /** Shows a value from now on. */
  public void set(String name, double value) {
    if (values.put(name, value) == null) registry.gauge(name, () -> () -> values.get(name));
  }

  /** Adds to a value that begins with 0. */
  public synchronized void add(String name, double more) {
    set(name, values.getOrDefault(name, 0.0) + more);
  }

  @Override
  public String sourceName() {
    return NAME;
  }

  @Override
  public MetricRegistry metricRegistry() {
    return registry;
  }
}
