// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark;

import org.apache.spark.sql.SparkSession;
import org.junit.jupiter.api.extension.BeforeAllCallback;
import org.junit.jupiter.api.extension.ExtensionContext;
import org.junit.jupiter.api.extension.ExtensionContext.Namespace;
import org.junit.jupiter.api.extension.ExtensionContext.Store.CloseableResource;

/** Stops the session that the tests share after the last of them. JUnit finds it by itself. */
public final class SparkStopper implements BeforeAllCallback {
  @Override
  public void beforeAll(ExtensionContext context) {
    context.getRoot().getStore(Namespace.GLOBAL).getOrComputeIfAbsent(
        SparkStopper.class, key -> (CloseableResource) SparkStopper::stop);
  }

  private static void stop() {
    if (SparkSession.getDefaultSession().isDefined()) {
      SparkSession.getDefaultSession().get().stop();
    }
  }
}
