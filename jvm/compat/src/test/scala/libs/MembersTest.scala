// SPDX-License-Identifier: Apache-2.0
package libs

import java.nio.file.Files

import org.junit.jupiter.api.Assertions._
import org.junit.jupiter.api.Test

/** What users' programs call is what public-members.txt lists, on both lines of Scala. */
class MembersTest {
  @Test def publicMembersAreThoseOfTheList(): Unit = {
    val packages = Seq("apps", "libs", "libs.v1", "loaders", "loaders.v1", "preprocessing")
    val found = packages.flatMap(PublicMembers.of).distinct.sorted
    assertEquals(PublicMembers.listed("public-members.txt").mkString("\n"), found.mkString("\n"))
  }

  /** Whatever protobuf lies on the class path, ours is another one. */
  @Test def nothingNamesProtobufsOwnPackage(): Unit = {
    val files = Seq(classOf[NDArray], classOf[caffe.Caffe]).map(PublicMembers.placeOf).distinct
      .flatMap(PublicMembers.filesIn)
    assertTrue(files.exists(_.endsWith("caffe/Caffe.class")))
    assertTrue(files.exists(_.endsWith("cafetiere/protobuf/TextFormat.class")))
    val naming = files.filter(file =>
      new String(Files.readAllBytes(file), "ISO-8859-1").contains("com/google/protobuf/"))
    assertEquals(Nil, naming.toList)
  }
}
