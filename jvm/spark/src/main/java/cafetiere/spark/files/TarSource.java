// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.files;

import java.util.Map;
import org.apache.spark.sql.SQLContext;

/** The data source "tar": the files in tars, such as ImageNet's images. */
public final class TarSource extends PathSource {
  public TarSource() {
    super("tar");
  }

  @Override
  protected Rows open(SQLContext context, Map<String, String> options) {
    return TarRows.open(context, options);
  }
}
