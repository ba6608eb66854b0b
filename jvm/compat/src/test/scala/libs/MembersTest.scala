// SPDX-License-Identifier: Apache-2.0
package libs

import java.lang.reflect.{Member, Modifier}
import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.{Files, Path, Paths}

import org.junit.jupiter.api.Assertions._
import org.junit.jupiter.api.Test

/** What users' programs call is what public-members.txt lists, on both lines of Scala. */
class MembersTest {
  private val root = Paths.get(sys.props("root"))
  private val packages = Seq("libs", "loaders", "preprocessing")

  @Test def publicMembersAreThoseOfTheList(): Unit = {
    val list = root.resolve("jvm/compat/src/test/resources/public-members.txt")
    val expected = new String(Files.readAllBytes(list), UTF_8).linesIterator
      .filterNot(line => line.isEmpty || line.startsWith("#")).toSeq
    val found = classes().flatMap(members).distinct.sorted
    assertEquals(expected.mkString("\n"), found.mkString("\n"))
  }

  /** Whatever protobuf lies on the class path, ours is another one. */
  @Test def nothingNamesProtobufsOwnPackage(): Unit = {
    val places = Seq(classOf[NDArray], classOf[caffe.Caffe]).map(_.getProtectionDomain.getCodeSource)
      .map(source => Paths.get(source.getLocation.toURI))
    val files = places.flatMap(filesIn)
    assertTrue(files.exists(_.endsWith("caffe/Caffe.class")))
    assertTrue(files.exists(_.endsWith("cafetiere/protobuf/TextFormat.class")))
    val naming = files.filter(file =>
      new String(Files.readAllBytes(file), "ISO-8859-1").contains("com/google/protobuf/"))
    assertEquals(Nil, naming.toList)
  }

  private def classes(): Seq[Class[_]] = {
    val place = Paths.get(classOf[NDArray].getProtectionDomain.getCodeSource.getLocation.toURI)
    for {
      name <- packages
      file <- filesIn(place.resolve(name))
      simple = file.getFileName.toString.stripSuffix(".class")
      found = Class.forName(s"$name.$simple")
      if Modifier.isPublic(found.getModifiers) && !simple.contains("$anon")
    } yield found
  }

  private def members(of: Class[_]): Seq[String] = {
    val name = of.getName.stripSuffix("$")
    def types(of: Array[Class[_]]): String = of.map(_.getSimpleName).mkString("(", ", ", ")")
    def shown(member: Member): Boolean =
      Modifier.isPublic(member.getModifiers) && !member.isSynthetic && !member.getName.contains("$")
    of.getDeclaredMethods.toSeq.filter(shown).filterNot(_.getName == "writeReplace").map(m =>
      s"$name.${m.getName}${types(m.getParameterTypes)}: ${m.getReturnType.getSimpleName}") ++
      of.getConstructors.toSeq.map(c => s"new $name${types(c.getParameterTypes)}")
  }

  private def filesIn(folder: Path): Seq[Path] = {
    val walk = Files.walk(folder)
    try walk.filter(_.toString.endsWith(".class")).toArray.toSeq.map(_.asInstanceOf[Path])
    finally walk.close()
  }
}
