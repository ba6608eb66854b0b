// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.files;

import java.util.Map;
import org.apache.spark.sql.SQLContext;

/** The data source "cifar": the binary files of CIFAR-10 and CIFAR-100. */
public final class CifarSource extends PathSource {
  public CifarSource() {
    super("cifar");
  }

  @Override
  protected Rows open(SQLContext context, Map<String, String> options) {
    return CifarRows.open(context, options);
  }
}
