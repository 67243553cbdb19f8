import { join } from 'node:path';
import { build, project } from './package/build.ts';

build(join(project, 'dist'));
