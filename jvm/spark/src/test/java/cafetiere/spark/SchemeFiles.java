// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark;

import java.io.IOException;
import java.net.URI;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FSInputStream;
import org.apache.hadoop.fs.RawLocalFileSystem;

/** Local files under a scheme of their own, for file systems that a test makes slow or shuts. */
abstract class SchemeFiles extends RawLocalFileSystem {
  private final String scheme;

  SchemeFiles(String scheme) {
    this.scheme = scheme;
  }

  @Override
  public URI getUri() {
    return URI.create(scheme + ":///");
  }

  @Override
  public String getScheme() {
    return scheme;
  }

  @Override
  public void initialize(URI uri, Configuration conf) throws IOException {
    super.initialize(uri, conf);
    setConf(conf);
  }

  /** An open file, for those who add to what reading does. */
  abstract static class Input extends FSInputStream {
    final FSDataInputStream in;

    Input(FSDataInputStream in) {
      this.in = in;
    }

    @Override
    public void seek(long position) throws IOException {
      in.seek(position);
    }

    @Override
    public long getPos() throws IOException {
      return in.getPos();
    }

    @Override
    public boolean seekToNewSource(long target) {
      return false;
    }

    @Override
    public void close() throws IOException {
      in.close();
    }
  }
}
