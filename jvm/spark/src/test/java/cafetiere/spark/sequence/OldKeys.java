// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.sequence;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.ObjectOutputStream;
import java.util.HexFormat;
import java.util.List;
import scala.Tuple2;
import scala.Tuple6;
import scala.util.Properties;

/** A program that prints serialized keys, with whatever Scala is on its class path. */
final class OldKeys {
  private OldKeys() {}

  public static void main(String[] args) throws IOException {
    System.out.println(Properties.versionNumberString());
    List<Object> keys = List.of(
        new Tuple2<>("a", "7"), new Tuple6<>("b", "1", 3, 28, 20, true));
    for (Object key : keys) {
      ByteArrayOutputStream bytes = new ByteArrayOutputStream();
      try (ObjectOutputStream out = new ObjectOutputStream(bytes)) {
        out.writeObject(key);
      }
      System.out.println(HexFormat.of().formatHex(bytes.toByteArray()));
    }
  }
}
